#include "linux/netlink_messages.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <array>

namespace atl::linux {
namespace {

constexpr size_t kAnswerBytes = 8192;

void pad(std::string& bytes) { bytes.append((4 - bytes.size() % 4) % 4, '\0'); }

void overwrite(std::string& bytes, size_t at, std::span<const char> value) {
  std::memcpy(bytes.data() + at, value.data(), value.size());
}

}  // namespace

void NetlinkMessages::begin_bytes(uint16_t type, uint16_t flags, std::string_view header) {
  end_message();
  message_ = bytes_.size();
  nlmsghdr head = {};
  head.nlmsg_type = type;
  head.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  head.nlmsg_seq = ++sequence_;
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes_.append(header);
  pad(bytes_);
}

void NetlinkMessages::acknowledge() {
  nlmsghdr head;
  std::memcpy(&head, bytes_.data() + message_, sizeof head);
  head.nlmsg_flags |= NLM_F_ACK;
  overwrite(bytes_, message_, as_bytes(head));
  ++answers_;
}

void NetlinkMessages::end_message() {
  if (bytes_.size() == message_) return;
  auto length = static_cast<uint32_t>(bytes_.size() - message_);
  overwrite(bytes_, message_ + offsetof(nlmsghdr, nlmsg_len), as_bytes(length));
}

void NetlinkMessages::attribute(uint16_t type, std::span<const char> value) {
  nlattr head = {};
  head.nla_type = type;
  head.nla_len = static_cast<uint16_t>(sizeof head + value.size());
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes_.append(value.data(), value.size());
  pad(bytes_);
}

void NetlinkMessages::text(uint16_t type, std::string_view value) {
  std::string with_end = std::string(value) + '\0';
  attribute(type, std::span<const char>(with_end));
}

void NetlinkMessages::be16(uint16_t type, uint16_t value) {
  uint16_t ordered = htons(value);
  attribute(type, as_bytes(ordered));
}

void NetlinkMessages::be32(uint16_t type, uint32_t value) {
  uint32_t ordered = htonl(value);
  attribute(type, as_bytes(ordered));
}

void NetlinkMessages::begin_nest(uint16_t type) {
  size_t at = bytes_.size();
  nests_.append(reinterpret_cast<const char*>(&at), sizeof at);
  attribute(static_cast<uint16_t>(type | NLA_F_NESTED), std::span<const char>());
}

void NetlinkMessages::end_nest() {
  size_t at = 0;
  ATOLL_CHECK(nests_.size() >= sizeof at);
  std::memcpy(&at, nests_.data() + nests_.size() - sizeof at, sizeof at);
  nests_.resize(nests_.size() - sizeof at);
  auto length = static_cast<uint16_t>(bytes_.size() - at);
  overwrite(bytes_, at + offsetof(nlattr, nla_len), as_bytes(length));
}

Result<void> NetlinkMessages::send(int socket) {
  end_message();
  if (::send(socket, bytes_.data(), bytes_.size(), 0) != static_cast<ssize_t>(bytes_.size()))
    return Error::system("send to netlink");
  alignas(nlmsghdr) std::array<char, kAnswerBytes> answer;
  while (answers_ > 0) {
    ssize_t count = recv(socket, answer.data(), answer.size(), 0);
    if (count <= 0) return Error::system("receive from netlink");
    auto left = static_cast<unsigned>(count);
    for (auto* head = reinterpret_cast<nlmsghdr*>(answer.data()); NLMSG_OK(head, left);
         head = NLMSG_NEXT(head, left)) {
      if (head->nlmsg_type != NLMSG_ERROR) continue;
      const auto* result = static_cast<const nlmsgerr*>(NLMSG_DATA(head));
      if (result->error != 0)
        return Error::from_errno("netlink message " + std::to_string(head->nlmsg_seq),
                                 -result->error);
      if (answers_ > 0) --answers_;
    }
  }
  return {};
}

Result<Fd> open_netlink(int family) {
  Fd opened(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family));
  if (!opened) return Error::system("open netlink");
  // Otherwise the kernel takes the number of this process, which /proc/net/netlink shows.
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  if (getrandom(&address.nl_pid, sizeof address.nl_pid, 0) != sizeof address.nl_pid)
    return Error::system("getrandom");
  address.nl_pid |= 1u << 31;
  if (bind(opened.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Error::system("bind netlink");
  return opened;
}

}  // namespace atl::linux
