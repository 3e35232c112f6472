#include "linux/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace atl::linux {
namespace {

constexpr mode_t kOwnerOnly = 0177;

Result<sockaddr_un> address_at(int directory, const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + name;
  if (path.size() >= sizeof address.sun_path)
    return Error::from_errno("socket name " + name, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Fd> make_socket(int type) {
  Fd socket_fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket_fd) return Error::system("socket");
  return socket_fd;
}

struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxSentFds) + CMSG_SPACE(sizeof(ucred))];
};

// Room that no credentials took can bring more descriptors than were asked for.
void take_descriptors(cmsghdr* part, std::span<Fd> fds, Received& received) {
  size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int number;
    std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
    Fd fd(number);
    if (i < fds.size()) fds[i] = std::move(fd);
  }
  received.fds = std::min(count, fds.size());
  if (count > fds.size()) received.whole = false;
}

void take_control(msghdr& header, std::span<Fd> fds, Received& received) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) take_descriptors(part, fds, received);
    if (part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    received.sender = sender.pid;
  }
}

Result<void> wait_readable(int socket, int timeout_ms) {
  pollfd waiting = {.fd = socket, .events = POLLIN, .revents = 0};
  int ready = poll(&waiting, 1, timeout_ms);
  if (ready < 0) return Error::system("poll");
  if (ready == 0) return Error(Code::kTimeout, "no message in time", ETIMEDOUT);
  return {};
}

}  // namespace

Result<Fd> listen_at(int directory, const std::string& name, int type, int backlog) {
  ATOLL_TRY(sockaddr_un address, address_at(directory, name));
  ATOLL_TRY(Fd listener, make_socket(type));
  // The mode comes from the umask: a chmod afterwards would leave a moment in which others can
  // connect.
  mode_t saved = umask(kOwnerOnly);
  int bound = bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  int bind_errno = errno;
  umask(saved);
  if (bound != 0) return Error::from_errno("bind " + name, bind_errno);
  if (listen(listener.get(), backlog) != 0) return Error::system("listen " + name);
  return listener;
}

Result<Fd> connect_at(int directory, const std::string& name, int type) {
  ATOLL_TRY(sockaddr_un address, address_at(directory, name));
  ATOLL_TRY(Fd socket_fd, make_socket(type));
  if (connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Error::system("connect " + name);
  return socket_fd;
}

Result<SocketPair> make_socket_pair(int type) {
  int pair[2];
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0) return Error::system("socketpair");
  return SocketPair{.ours = Fd(pair[0]), .theirs = Fd(pair[1])};
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Error::system("SO_PEERCRED");
  return PeerCredentials{.pid = peer.pid, .uid = peer.uid};
}

Result<void> send_message(int socket, std::span<const char> bytes, std::span<const int> fds,
                          int flags) {
  ATOLL_CHECK(fds.size() <= kMaxSentFds);
  iovec data = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  Control control = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  while (true) {
    ssize_t count = sendmsg(socket, &header, flags | MSG_NOSIGNAL);
    if (count == static_cast<ssize_t>(bytes.size())) return {};
    if (count >= 0) return Error::from_errno("sendmsg: cut short", EMSGSIZE);
    if (errno != EINTR) return Error::system("sendmsg");
  }
}

Result<Received> receive_message(int socket, std::span<char> bytes, std::span<Fd> fds, int flags) {
  ATOLL_CHECK(fds.size() <= kMaxSentFds);
  iovec data = {.iov_base = bytes.data(), .iov_len = bytes.size()};
  Control control = {};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(fds.size_bytes()) + CMSG_SPACE(sizeof(ucred));
  ssize_t count = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  if (count < 0 && errno == ECONNRESET) count = 0;
  if (count < 0) return Error::system("recvmsg");
  Received received = {.bytes = static_cast<size_t>(count),
                       .fds = 0,
                       .whole = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0,
                       .sender = std::nullopt};
  take_control(header, fds, received);
  return received;
}

Result<void> send_byte(int socket, char byte, std::span<const int> fds) {
  return send_message(socket, {&byte, 1}, fds);
}

Result<std::optional<ByteMessage>> receive_byte(int socket, int timeout_ms) {
  ATOLL_TRY_VOID(wait_readable(socket, timeout_ms));
  ByteMessage message = {};
  ATOLL_TRY(Received received, receive_message(socket, {&message.byte, 1}, message.fds));
  if (received.bytes == 0) return std::optional<ByteMessage>();
  if (!received.whole) return Error::from_errno("recvmsg: too much", EMSGSIZE);
  message.sender = received.sender;
  return std::optional(std::move(message));
}

Result<TextMessage> receive_text(int socket, size_t limit, int timeout_ms) {
  ATOLL_TRY_VOID(wait_readable(socket, timeout_ms));
  std::string text(limit, '\0');
  ATOLL_TRY(Received received, receive_message(socket, text, {}));
  if (!received.whole) return Error::from_errno("recvmsg: too long", EMSGSIZE);
  text.resize(received.bytes);
  return TextMessage{std::move(text), received.sender};
}

}  // namespace atl::linux
