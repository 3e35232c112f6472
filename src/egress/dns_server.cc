#include "egress/dns_server.h"

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <netinet/in.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "egress/dns_message.h"

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr size_t kMaxStreamQuestions = 64;
constexpr std::chrono::seconds kStreamTime{10};
constexpr int kMaxDatagramsAtOnce = 64;

constexpr uint16_t kInternet = 1;

AuditRow row_for(const std::string& name, std::string reason) {
  return {.event = AuditEvent::kDns, .name = name, .protocol = "dns", .reason = std::move(reason)};
}

struct Choice {
  DnsStatus status;
  std::optional<Address> address = std::nullopt;
  AuditRow row;
};

Choice choose(Gate& gate, const DnsQuestion& question) {
  auto denied = [&](DnsStatus status, std::string reason) {
    return Choice{.status = status, .row = row_for(question.name, std::move(reason))};
  };
  auto name = HostName::parse(question.name);
  if (!name) return denied(DnsStatus::kNoSuchName, "bad_name");
  Decision decision = gate.policy().decide_name(*name);
  if (!decision.allowed() && !gate.policy().learns_of(decision)) {
    Choice choice = denied(DnsStatus::kNoSuchName, decision.reason);
    choice.row.rule = decision.rule;
    return choice;
  }
  bool wants_v4 = question.asks_for(RecordType::kA);
  bool wants_v6 = question.asks_for(RecordType::kAaaa);
  if (question.record_class != kInternet || (!wants_v4 && !wants_v6))
    return denied(DnsStatus::kRefused, "record_type_refused");
  auto number = gate.names().number_of(*name);
  if (!number) return denied(DnsStatus::kServerFailure, number.error().reason());
  Address address = wants_v4 ? NameTable::v4(*number) : NameTable::v6(*number);
  AuditRow row = row_for(name->string(), decision.allowed() ? "" : "learning");
  row.allowed = decision.allowed();
  row.rule = decision.rule;
  row.address = address.string();
  return {.status = DnsStatus::kOk, .address = address, .row = std::move(row)};
}

// With the destination of the question as the source of its answer.
void send_answer(int socket, msghdr& question, const std::string& answer) {
  iovec bytes = {.iov_base = const_cast<char*>(answer.data()), .iov_len = answer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> control = {};
  msghdr reply = {};
  reply.msg_name = question.msg_name;
  reply.msg_namelen = question.msg_namelen;
  reply.msg_iov = &bytes;
  reply.msg_iovlen = 1;
  for (cmsghdr* one = CMSG_FIRSTHDR(&question); one != nullptr; one = CMSG_NXTHDR(&question, one)) {
    reply.msg_control = control.data();
    if (one->cmsg_level == SOL_IP && one->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(one), sizeof info);
      info.ipi_spec_dst = info.ipi_addr;
      info.ipi_ifindex = 0;
      auto* head = reinterpret_cast<cmsghdr*>(control.data());
      *head = {.cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = SOL_IP, .cmsg_type = IP_PKTINFO};
      std::memcpy(CMSG_DATA(head), &info, sizeof info);
      reply.msg_controllen = CMSG_SPACE(sizeof info);
    } else if (one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(one), sizeof info);
      info.ipi6_ifindex = 0;
      auto* head = reinterpret_cast<cmsghdr*>(control.data());
      *head = {
          .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = SOL_IPV6, .cmsg_type = IPV6_PKTINFO};
      std::memcpy(CMSG_DATA(head), &info, sizeof info);
      reply.msg_controllen = CMSG_SPACE(sizeof info);
    }
  }
  sendmsg(socket, &reply, MSG_DONTWAIT | MSG_NOSIGNAL);  // lost answers are asked for again
}

}  // namespace

std::string answer_question(Gate& gate, std::span<const unsigned char> message) {
  auto question = parse_dns_question(message);
  if (!question) {
    (void)gate.record(row_for("", "bad_question"));
    return make_format_error(message).value_or("");
  }
  Choice choice = choose(gate, *question);
  if (!gate.record(choice.row)) return make_dns_answer(*question, DnsStatus::kServerFailure);
  return make_dns_answer(*question, choice.status, choice.address ? &*choice.address : nullptr);
}

void answer_datagrams(Gate& gate, int socket) {
  std::array<unsigned char, kMaxQuestionBytes + 1> buffer;
  for (int i = 0; i < kMaxDatagramsAtOnce; ++i) {
    sockaddr_storage from = {};
    alignas(cmsghdr) std::array<char, 256> control = {};
    iovec bytes = {.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message = {};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT);
    if (count < 0) return;
    std::string answer = answer_question(gate, std::span(buffer).first(static_cast<size_t>(count)));
    if (!answer.empty()) send_answer(socket, message, answer);
  }
}

Task<void> serve_dns_stream(std::shared_ptr<Gate> gate, Fd accepted) {
  // Shared with the timer, whose end may come after this one.
  auto shared = std::make_shared<asio::ip::tcp::socket>(gate->surroundings().executor);
  asio::ip::tcp::socket& socket = *shared;
  Descriptors::Share descriptors;
  if (!descriptors.grow(gate->surroundings().descriptors, gate->tenant(), 1)) co_return;
  boost::system::error_code failure;
  socket.assign(asio::ip::tcp::v4(), accepted.get(), failure);
  if (failure) co_return;
  (void)accepted.release();
  asio::steady_timer timer(gate->surroundings().executor, kStreamTime);
  timer.async_wait([shared](boost::system::error_code error) {
    boost::system::error_code ignored;
    if (!error) shared->close(ignored);
  });
  std::array<unsigned char, kMaxQuestionBytes> buffer;
  for (size_t i = 0; i < kMaxStreamQuestions && !gate->closed(); ++i) {
    std::array<unsigned char, 2> length;
    asio::mutable_buffer length_room = asio::buffer(length);
    auto [no_length, got] = co_await asio::async_read(socket, length_room, kToken);
    size_t bytes = static_cast<size_t>(length[0] << 8 | length[1]);
    if (!no_length && bytes > buffer.size()) (void)gate->record(row_for("", "bad_question"));
    if (no_length || bytes > buffer.size()) break;
    asio::mutable_buffer room = asio::buffer(buffer.data(), bytes);
    auto [no_question, read] = co_await asio::async_read(socket, room, kToken);
    if (no_question) break;
    gate->surroundings().changes.apply();
    if (gate->closed()) break;
    std::string answer = answer_question(*gate, std::span(buffer).first(bytes));
    if (answer.empty()) break;
    answer.insert(0, 1, static_cast<char>(answer.size() & 0xff));
    answer.insert(0, 1, static_cast<char>((answer.size() - 1) >> 8));
    asio::const_buffer reply = asio::buffer(answer);
    auto [not_sent, sent] = co_await asio::async_write(socket, reply, kToken);
    if (not_sent) break;
  }
  timer.cancel();
}

}  // namespace atl::egress
