#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/write.hpp>

#include "egress/client_hello.h"
#include "egress/dial.h"
#include "egress/proxy_request.h"
#include "egress/refusal_page.h"
#include "egress/relayed_connection.h"
#include "egress/request_stream.h"
#include "egress/spoken_protocol.h"
#include "egress/synthetic.h"

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kDialTime{15};
constexpr std::chrono::seconds kLearningTime{2};

constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

Error denied(std::string_view reason) {
  return Error(Code::kDenied, std::string(reason)).with_reason(reason);
}

}  // namespace

// The destination that the program dialled is the socket's own address.
Result<void> Relay::find_destination() {
  sockaddr_storage local = {};
  socklen_t bytes = sizeof local;
  if (getsockname(inside_.native_handle(), reinterpret_cast<sockaddr*>(&local), &bytes) != 0)
    return Error::system("getsockname");
  auto address = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&local), bytes);
  if (!address) return denied("unknown_address");
  destination_ = address->string();
  port_ = ntohs(local.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&local)->sin_port
                                           : reinterpret_cast<sockaddr_in6*>(&local)->sin6_port);
  is_proxied_ = port_ == kProxyPort &&
                (*address == Address::v4(kInsideV4) || *address == Address::v6(kInsideV6));
  return is_proxied_ ? Result<void>() : find_address(*address);
}

// It stands for a name, or for itself.
Result<void> Relay::find_address(const Address& address) {
  destination_ = address.string();
  name_ = gate_->names().find(address);
  if (!name_ && is_synthetic(address.bytes())) return denied("unknown_address");
  if (!name_) literal_ = address;
  return {};
}

Task<Result<void>> Relay::find_proxied() {
  protocol_ = Protocol::kHttp;  // so that a refusal is a page
  auto request = parse_proxy_request(opening_);
  while (request && !*request) {
    ATOLL_CO_TRY_VOID(co_await read_more());
    request = parse_proxy_request(opening_);
  }
  if (!request) co_return std::move(request).error();
  port_ = (*request)->port;
  if (const auto* name = std::get_if<HostName>(&(*request)->to)) name_ = *name;
  destination_.clear();
  if (const auto* address = std::get_if<Address>(&(*request)->to))
    ATOLL_CO_TRY_VOID(find_address(*address));
  opening_.erase(0, (*request)->bytes);
  asks_by_url_ = (*request)->head.has_value();
  if (asks_by_url_) opening_.insert(0, *(*request)->head);
  co_return Result<void>();
}

// Nothing is dialled: only what it begins to say is looked at.
Task<Result<void>> Relay::learn() {
  decision_.rule.clear();
  arm(kLearningTime);
  if (is_proxied_ && !asks_by_url_) ATOLL_CO_TRY_VOID(co_await say(kEstablished));
  Result<void> read;
  if (opening_.empty()) read = co_await read_more();
  learned_ = read ? guess_protocol(opening_) : Protocol::kTcp;
  protocol_ = *learned_;
  end_reason_.clear();
  co_return denied("learning");
}

Task<Result<void>> Relay::read_more() {
  size_t had = opening_.size();
  opening_.resize(had + kReadBytes);
  asio::mutable_buffer room(opening_.data() + had, kReadBytes);
  auto [error, count] = co_await inside_.async_read_some(room, kToken);
  opening_.resize(had + count);
  if (!error) co_return Result<void>();
  co_return denied(end_reason_.empty() ? "closed_early" : end_reason_);
}

Task<Result<void>> Relay::read_hello() {
  while (true) {
    auto hello = parse_client_hello(opening_);
    if (!hello) co_return denied("bad_hello");
    if (*hello) {
      if ((*hello)->is_encrypted) co_return denied("encrypted_hello");
      // To an address by itself no name is asked for.
      if (!(*hello)->server_name && literal_) co_return Result<void>();
      if (!(*hello)->server_name) co_return denied("no_server_name");
      auto asked = HostName::parse(*(*hello)->server_name);
      if (!asked || asked != name_) co_return denied("server_name_mismatch");
      co_return Result<void>();
    }
    ATOLL_CO_TRY_VOID(co_await read_more());
  }
}

Task<Result<void>> Relay::read_request() {
  // A stream of its own: the one that goes on with the connection must see the bytes again.
  RequestStream first(destination(), port_);
  while (true) {
    auto passed = first.pass_piece(opening_);
    if (!passed) co_return std::move(passed).error();
    if (passed->bytes > 0) break;
    ATOLL_CO_TRY_VOID(co_await read_more());
  }
  if (!decision_.is_inspected) co_return Result<void>();
  Decision decision = gate_->policy().decide_request(*name_, port_, first.method(), first.path());
  if (decision.allowed()) co_return Result<void>();
  decision_.rule = decision.rule;
  method_ = first.method();
  path_ = first.path();
  co_return denied(decision.reason);
}

Task<Result<void>> Relay::read_opening() {
  protocol_ = asks_by_url_ ? Protocol::kHttp : decision_.protocol;
  bool is_any = decision_.protocol == Protocol::kTcp;
  if (is_any && !asks_by_url_) co_return Result<void>();
  if (opening_.empty()) ATOLL_CO_TRY_VOID(co_await read_more());
  if (!is_any) {
    ATOLL_CO_TRY(protocol_, tell_protocol(decision_.protocol, port_, opening_[0]));
  }
  if (protocol_ == Protocol::kTls) {
    auto read = co_await read_hello();
    co_return read;
  }
  auto read = co_await read_request();
  co_return read;
}

Task<Result<void>> Relay::dial_one(Address address) {
  gate_->surroundings().changes.apply();
  if (!end_reason_.empty()) co_return denied(end_reason_);
  dialled_ = address;
  // Before anything is dialled: what is not recorded does not happen.
  AuditRow allowed = row(AuditEvent::kConnect);
  allowed.allowed = true;
  if (!gate_->record(allowed)) co_return denied("audit_failed");
  Wanted to{destination(), port_};
  auto connected = co_await connect_out(*gate_, outside_, address, to);
  gate_->surroundings().changes.apply();
  if (!end_reason_.empty()) co_return denied(end_reason_);
  boost::system::error_code ignored;
  inside_.set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return connected;
}

Task<Result<void>> Relay::dial() {
  Wanted to{destination(), port_};
  through_ = gate_->policy().policy().upstream;
  has_upstream_ = through_ || gate_->surroundings().upstream != nullptr;
  auto addresses = co_await find_addresses(*gate_, to);
  if (!addresses) co_return std::move(addresses).error();
  if (!end_reason_.empty()) co_return denied(end_reason_);
  // The policy may have changed while the name was asked for.
  Decision now = gate_->inspector().decide(destination(), port_);
  bool same_way = through_ == gate_->policy().policy().upstream;
  if (!now.allowed() || now.is_inspected != decision_.is_inspected || !same_way)
    co_return denied("policy_changed");
  Result<void> dialled = denied("dial_failed");
  for (const Address& address : *addresses) {
    dialled = co_await dial_one(address);
    if (dialled || dialled.error().reason() != "dial_failed") break;
  }
  co_return dialled;
}

Task<Result<void>> Relay::say(std::string_view text) {
  asio::const_buffer bytes = asio::buffer(text);
  auto [error, sent] = co_await asio::async_write(inside_, bytes, kToken);
  if (error) co_return denied("closed_early");
  co_return Result<void>();
}

Task<Result<void>> Relay::open() {
  ATOLL_CO_TRY_VOID(find_destination());
  if (gate_->closed() || !gate_->connections().enter(this, gate_->tenant()))
    co_return denied("too_many_connections");
  gate_->surroundings().changes.apply();
  arm(kOpeningTime);
  if (is_proxied_) ATOLL_CO_TRY_VOID(co_await find_proxied());
  decision_ = gate_->inspector().decide(destination(), port_);
  if (gate_->policy().learns_of(decision_)) {
    auto learned = co_await learn();
    co_return learned;
  }
  if (!decision_.allowed()) co_return denied(decision_.reason);
  purse_.set_rule(decision_.index);
  ATOLL_CO_TRY_VOID(purse_.begin());
  if (is_proxied_ && !asks_by_url_) ATOLL_CO_TRY_VOID(co_await say(kEstablished));
  ATOLL_CO_TRY_VOID(co_await read_opening());
  arm(kDialTime);
  auto dialled = co_await dial();
  timer_.cancel();
  co_return dialled;
}

Task<void> Relay::refuse(Error error) {
  bool was_recorded = dialled_.has_value();
  AuditRow made = row(was_recorded ? AuditEvent::kClosed : AuditEvent::kConnect);
  made.reason = error.reason().empty() ? "failed" : error.reason();
  if (!error.field().empty()) made.rule = error.field();
  // Nothing was sent: there is nothing to decide.
  bool nothing_said = made.reason == "closed_early" && opening_.empty();
  if (nothing_said) made.allowed = decision_.allowed();
  (void)gate_->record(made);
  bool has_asked = is_proxied_ || !opening_.empty();
  if (protocol_ == Protocol::kHttp && inside_.is_open() && has_asked) {
    std::string page = refusal_page(refusal_status(made.reason), made.reason);
    asio::const_buffer bytes = asio::buffer(page);
    auto [failed, sent] = co_await asio::async_write(inside_, bytes, kToken);
    boost::system::error_code ignored;
    if (!failed) inside_.shutdown(Socket::shutdown_send, ignored);
    inside_.close(ignored);
  }
  close_both();
}

}  // namespace atl::egress
