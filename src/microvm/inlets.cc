#include "microvm/inlets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <optional>

#include "egress/synthetic.h"
#include "microvm/passage.h"

namespace atl::microvm {
namespace {

constexpr int kBacklog = 128;
constexpr int kSocketBytes = 64 * 1024;  // what the kernel keeps of each connection, each way
constexpr size_t kMaxQuestionBytes = 1500;
constexpr int kMaxQuestionsAtOnce = 16;
constexpr int kOriginalDestination = 80;  // SO_ORIGINAL_DST, whose header defines too much else

sockaddr_in address_of(const egress::V4Bytes& bytes, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  std::memcpy(&address.sin_addr, bytes.data(), bytes.size());
  return address;
}

Result<Fd> bind_at(const egress::V4Bytes& bytes, uint16_t port, int type) {
  Fd made(socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) return Error::system("socket");
  // What is accepted has the same.
  for (int option : {SO_SNDBUF, SO_RCVBUF})
    setsockopt(made.get(), SOL_SOCKET, option, &kSocketBytes, sizeof kSocketBytes);
  sockaddr_in address = address_of(bytes, port);
  if (bind(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Error::system("bind port " + std::to_string(port));
  if (type == SOCK_STREAM && listen(made.get(), kBacklog) != 0) return Error::system("listen");
  return made;
}

// Where the program wanted to go: what the kernel has changed, or the socket's own address.
std::optional<Destination> destination_of(int socket) {
  sockaddr_in address = {};
  socklen_t bytes = sizeof address;
  if (getsockopt(socket, SOL_IP, kOriginalDestination, &address, &bytes) != 0) {
    bytes = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
      return std::nullopt;
  }
  if (address.sin_family != AF_INET || address.sin_port == 0) return std::nullopt;
  Destination destination = {.transport = Transport::kStream,
                             .reserved = 0,
                             .port = ntohs(address.sin_port),
                             .address = {}};
  std::memcpy(destination.address.data(), &address.sin_addr, destination.address.size());
  return destination;
}

void accept_all(int listener, Passage& passage) {
  while (!passage.is_full()) {
    Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (auto destination = destination_of(socket.get()))
      passage.open(std::move(socket), *destination);
  }
}

void take_questions(int socket, Passage& passage) {
  const Destination resolver = {.transport = Transport::kQuestion,
                                .reserved = 0,
                                .port = egress::kDnsPort,
                                .address = egress::kInsideV4};
  for (int i = 0; i < kMaxQuestionsAtOnce; ++i) {
    char bytes[kMaxQuestionBytes];
    sockaddr_in from = {};
    socklen_t size = sizeof from;
    ssize_t count = recvfrom(socket, bytes, sizeof bytes, MSG_DONTWAIT,
                             reinterpret_cast<sockaddr*>(&from), &size);
    if (count < 0) return;
    auto answer = [socket, from](std::string_view text) {
      sendto(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&from), sizeof from);
    };
    passage.ask(resolver, {bytes, static_cast<size_t>(count)}, answer);
  }
}

}  // namespace

Result<Inlets> make_inlets() {
  static_assert(kQuestionPort == egress::kDnsPort);
  Inlets inlets;
  // At every address: what is sent elsewhere arrives at one of the kernel's choice.
  ATOLL_TRY(inlets.connections, bind_at({}, egress::kConnectionPort, SOCK_STREAM));
  ATOLL_TRY(inlets.proxy, bind_at(egress::kInsideV4, egress::kProxyPort, SOCK_STREAM));
  ATOLL_TRY(inlets.stream_questions, bind_at(egress::kInsideV4, egress::kDnsPort, SOCK_STREAM));
  ATOLL_TRY(inlets.questions, bind_at(egress::kInsideV4, egress::kDnsPort, SOCK_DGRAM));
  return inlets;
}

void serve_inlets(Fd port, Inlets inlets) {
  Passage passage(std::move(port));
  while (true) {
    // A question that there is no room for is dropped by the kernel, and asked again.
    int questions = passage.may_queue() ? inlets.questions.get() : -1;
    std::vector<pollfd> polls = {{.fd = questions, .events = POLLIN, .revents = 0}};
    // What cannot be carried yet waits in the listening sockets.
    if (!passage.is_full())
      for (const Fd* listener : {&inlets.connections, &inlets.proxy, &inlets.stream_questions})
        polls.push_back({.fd = listener->get(), .events = POLLIN, .revents = 0});
    size_t own = polls.size();
    passage.add_watches(polls);
    if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) _exit(1);
    if (!passage.move_bytes(polls)) _exit(1);
    if (polls[0].revents != 0) take_questions(inlets.questions.get(), passage);
    for (size_t i = 1; i < own; ++i)
      if (polls[i].revents != 0) accept_all(polls[i].fd, passage);
  }
}

}  // namespace atl::microvm
