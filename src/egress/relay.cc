#include "egress/relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "egress/client_hello.h"
#include "egress/dial.h"
#include "egress/proxy_request.h"
#include "egress/purse.h"
#include "egress/refusal_page.h"
#include "egress/request_stream.h"
#include "egress/spoken_protocol.h"
#include "egress/synthetic.h"

namespace atl::egress {

namespace asio = boost::asio;
using Socket = asio::ip::tcp::socket;

namespace {

constexpr std::chrono::seconds kOpeningTime{15};  // until the first bytes are understood
constexpr std::chrono::seconds kDialTime{15};
constexpr std::chrono::seconds kLearningTime{2};
constexpr size_t kReadBytes = 16 * 1024;

constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

Error denied(std::string_view reason) {
  return Error(Code::kDenied, std::string(reason)).with_reason(reason);
}

class Relay final : public OpenConnection, public std::enable_shared_from_this<Relay> {
 public:
  Relay(std::shared_ptr<Gate> gate, Fd accepted)
      : gate_(std::move(gate)),
        inside_(gate_->surroundings().executor),
        outside_(gate_->surroundings().executor),
        timer_(gate_->surroundings().executor),
        both_done_(gate_->surroundings().executor, asio::steady_timer::time_point::max()),
        purse_(gate_->spending()) {
    number_ = gate_->next_connection();
    boost::system::error_code error;
    inside_.assign(asio::ip::tcp::v4(), accepted.get(), error);
    if (!error) (void)accepted.release();
  }
  ~Relay() override { gate_->leave(this); }

  Task<void> run();

  bool is_still_allowed() override;
  void cut(const std::string& reason) override {
    if (end_reason_.empty()) end_reason_ = reason;
    close_both();
  }

 private:
  Task<Result<void>> open();
  Task<Result<void>> read_opening();
  Task<Result<void>> read_hello();
  Task<Result<void>> read_request();
  Task<Result<void>> read_more();
  Task<Result<void>> say(std::string_view text);
  Task<Result<void>> dial();
  Task<Result<void>> dial_one(Address address);
  Result<void> find_destination();
  Result<void> find_address(const Address& address);
  Task<Result<void>> find_proxied();
  Task<Result<void>> learn();
  Destination destination() const { return name_ ? Destination(*name_) : Destination(*literal_); }
  // A budget is used up.
  void end_by(const Error& overdraft);
  AuditRow row(AuditEvent event) const;
  Task<void> refuse(Error error);

  Task<void> carry();
  Task<void> pump([[maybe_unused]] std::shared_ptr<Relay> self, Flow flow);
  Task<void> pump_requests([[maybe_unused]] std::shared_ptr<Relay> self);
  Task<bool> drain(Pipe& pipe, size_t left, Socket& to);
  void arm(std::chrono::seconds time);
  void note_done();
  void close_both();

  std::shared_ptr<Gate> gate_;
  Socket inside_, outside_;
  asio::steady_timer timer_, both_done_;
  uint64_t number_ = 0;
  // Where it goes: one of both.
  std::optional<HostName> name_;
  std::optional<Address> literal_;
  bool is_proxied_ = false;  // the program has asked us by CONNECT
  std::string destination_;
  std::optional<Address> dialled_;
  uint16_t port_ = 0;
  Decision decision_;
  Protocol protocol_ = Protocol::kTcp;
  std::optional<Protocol> learned_;  // what would have been spoken
  std::string opening_;              // bytes from inside that did not go on yet
  std::optional<RequestStream> requests_;
  Purse purse_;
  uint64_t bytes_out_ = 0, bytes_in_ = 0;
  unsigned pumps_ = 0;
  std::string end_reason_;
};

void Relay::close_both() {
  boost::system::error_code ignored;
  // A reset tells the program at once, also one that only writes.
  inside_.set_option(asio::socket_base::linger(true, 0), ignored);
  inside_.close(ignored);
  outside_.close(ignored);
}

void Relay::arm(std::chrono::seconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    auto self = weak.lock();
    if (!error && self) self->cut("timeout");
  });
}

AuditRow Relay::row(AuditEvent event) const {
  AuditRow made{.event = event, .name = name_ ? name_->string() : ""};
  made.address = dialled_ ? dialled_->string() : destination_;
  made.port = port_;
  made.protocol = decision_.allowed() ? std::string(protocol_name(protocol_)) : "tcp";
  if (learned_) made.protocol = protocol_name(*learned_);
  if (dialled_ && gate_->surroundings().upstream) made.via = "upstream";
  made.rule = decision_.rule;
  made.connection = number_;
  return made;
}

bool Relay::is_still_allowed() {
  if (!decision_.allowed()) return true;  // nothing was allowed yet
  Decision now = gate_->policy().decide(destination(), port_);
  // What was said so far was looked at by the rules that were.
  bool same = now.allowed() && now.protocol == decision_.protocol;
  bool checked = dialled_ && name_ && gate_->surroundings().upstream == nullptr;
  if (!same || (checked && !gate_->policy().may_dial(*dialled_, port_))) return false;
  decision_ = now;
  purse_.set_rule(now.index);
  return true;
}

void Relay::end_by(const Error& overdraft) {
  decision_.rule = overdraft.field();
  cut(std::string(overdraft.reason()));
}

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
  co_return Result<void>();
}

// Nothing is dialled: only what it begins to say is looked at.
Task<Result<void>> Relay::learn() {
  decision_.rule.clear();
  arm(kLearningTime);
  if (is_proxied_) ATOLL_CO_TRY_VOID(co_await say(kEstablished));
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
    auto passed = first.pass(opening_);
    if (!passed) co_return std::move(passed).error();
    if (*passed > 0) break;
    ATOLL_CO_TRY_VOID(co_await read_more());
  }
  requests_.emplace(destination(), port_);
  co_return Result<void>();
}

Task<Result<void>> Relay::read_opening() {
  protocol_ = decision_.protocol;
  if (protocol_ == Protocol::kTcp) co_return Result<void>();
  if (opening_.empty()) ATOLL_CO_TRY_VOID(co_await read_more());
  ATOLL_CO_TRY(protocol_, tell_protocol(decision_.protocol, port_, opening_[0]));
  if (protocol_ == Protocol::kTls) {
    auto read = co_await read_hello();
    co_return read;
  }
  auto read = co_await read_request();
  co_return read;
}

Task<Result<void>> Relay::dial_one(Address address) {
  dialled_ = address;
  // Before anything is dialled: what is not recorded does not happen.
  AuditRow allowed = row(AuditEvent::kConnect);
  allowed.allowed = true;
  if (!gate_->record(allowed)) co_return denied("audit_failed");
  Wanted to{destination(), port_};
  auto connected = co_await connect_out(*gate_, outside_, address, to);
  if (!end_reason_.empty()) co_return denied(end_reason_);
  boost::system::error_code ignored;
  inside_.set_option(asio::ip::tcp::no_delay(true), ignored);
  co_return connected;
}

Task<Result<void>> Relay::dial() {
  Wanted to{destination(), port_};
  auto addresses = co_await find_addresses(*gate_, to);
  if (!addresses) co_return std::move(addresses).error();
  if (!end_reason_.empty()) co_return denied(end_reason_);
  // The policy may have changed while the name was asked for.
  if (!gate_->policy().decide(destination(), port_).allowed()) co_return denied("policy_changed");
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
  if (!gate_->enter(this)) co_return denied("too_many_connections");
  arm(kOpeningTime);
  if (is_proxied_) ATOLL_CO_TRY_VOID(co_await find_proxied());
  decision_ = gate_->policy().decide(destination(), port_);
  if (gate_->policy().learns_of(decision_)) {
    auto learned = co_await learn();
    co_return learned;
  }
  if (!decision_.allowed()) co_return denied(decision_.reason);
  purse_.set_rule(decision_.index);
  ATOLL_CO_TRY_VOID(purse_.begin());
  if (is_proxied_) ATOLL_CO_TRY_VOID(co_await say(kEstablished));
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
    bool is_later = made.reason == "budget_requests";
    std::string page = refusal_page(is_later ? "429 Too Many Requests" : "403 Forbidden",
                                    std::string(made.reason));
    asio::const_buffer bytes = asio::buffer(page);
    auto [failed, sent] = co_await asio::async_write(inside_, bytes, kToken);
    boost::system::error_code ignored;
    if (!failed) inside_.shutdown(Socket::shutdown_send, ignored);
    inside_.close(ignored);
  }
  close_both();
}

void Relay::note_done() {
  if (--pumps_ == 0) both_done_.cancel();
}

// What is in the pipe goes on, however slowly the other side takes it.
Task<bool> Relay::drain(Pipe& pipe, size_t left, Socket& to) {
  while (left > 0 && to.is_open()) {
    ssize_t moved = splice(pipe.read_end.get(), nullptr, to.native_handle(), nullptr, left,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved > 0) {
      left -= static_cast<size_t>(moved);
      continue;
    }
    if (moved == 0 || errno != EAGAIN) co_return false;
    auto [error] = co_await to.async_wait(Socket::wait_write, kToken);
    if (error) co_return false;
  }
  co_return left == 0;
}

Task<void> Relay::pump([[maybe_unused]] std::shared_ptr<Relay> self, Flow flow) {
  Socket& from = flow == Flow::kOut ? inside_ : outside_;
  Socket& to = flow == Flow::kOut ? outside_ : inside_;
  uint64_t& bytes = flow == Flow::kOut ? bytes_out_ : bytes_in_;
  while (from.is_open() && to.is_open()) {
    auto [error] = co_await from.async_wait(Socket::wait_read, kToken);
    if (error || !from.is_open()) break;
    auto most = purse_.share(from.native_handle(), flow, kPipeBytes);
    if (!most) end_by(most.error());
    if (!most) break;
    auto pipe = gate_->surroundings().pipes.take();
    if (!pipe) break;
    ssize_t count = splice(from.native_handle(), nullptr, pipe->write_end.get(), nullptr, *most,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count < 0 && errno == EAGAIN) {
      gate_->surroundings().pipes.give_back(std::move(*pipe));
      continue;
    }
    if (count <= 0) {
      boost::system::error_code ignored;
      if (count == 0) to.shutdown(Socket::shutdown_send, ignored);
      if (count < 0) cut("connection_reset");
      gate_->surroundings().pipes.give_back(std::move(*pipe));
      note_done();
      co_return;
    }
    purse_.spend(flow, static_cast<uint64_t>(count));
    bool drained = co_await drain(*pipe, static_cast<size_t>(count), to);
    if (!drained) break;
    bytes += static_cast<uint64_t>(count);
    gate_->surroundings().pipes.give_back(std::move(*pipe));
  }
  cut("connection_reset");
  note_done();
}

Task<void> Relay::pump_requests([[maybe_unused]] std::shared_ptr<Relay> self) {
  std::string waiting = std::move(opening_);
  boost::system::error_code ignored;
  while (true) {
    auto passed = requests_->pass(waiting);
    auto paid = passed ? purse_.count_requests(requests_->requests()) : Result<void>();
    if (passed && paid) paid = purse_.spend_piece(*passed);
    if (!paid) end_by(paid.error());
    if (!paid) break;
    if (!passed) {
      AuditRow refused = row(AuditEvent::kConnect);
      refused.reason = passed.error().reason();
      (void)gate_->record(refused);
      cut(refused.reason);
      break;
    }
    if (*passed > 0) {
      asio::const_buffer bytes = asio::buffer(waiting.data(), *passed);
      auto [failed, sent] = co_await asio::async_write(outside_, bytes, kToken);
      bytes_out_ += sent;
      if (failed) break;
      waiting.erase(0, *passed);
      continue;
    }
    size_t had = waiting.size();
    waiting.resize(had + kReadBytes);
    asio::mutable_buffer room(waiting.data() + had, kReadBytes);
    auto [error, count] = co_await inside_.async_read_some(room, kToken);
    waiting.resize(had + count);
    if (error == asio::error::eof) outside_.shutdown(Socket::shutdown_send, ignored);
    if (error == asio::error::eof) break;
    if (error) cut("connection_reset");
    if (error) break;
  }
  note_done();
}

Task<void> Relay::carry() {
  auto self = shared_from_this();
  auto executor = gate_->surroundings().executor;
  auto paid = requests_ ? Result<void>() : purse_.spend_piece(opening_.size());
  if (!paid) end_by(paid.error());
  if (!requests_ && paid && !opening_.empty()) {
    std::string first = std::move(opening_);
    asio::const_buffer bytes = asio::buffer(first);
    auto [failed, sent] = co_await asio::async_write(outside_, bytes, kToken);
    bytes_out_ += sent;
    if (failed) cut("connection_reset");
  }
  pumps_ = 2;
  // detached: each owns a share of the relay, and run() waits for both
  if (requests_)
    asio::co_spawn(executor, pump_requests(self), asio::detached);
  else  // owns a share too
    asio::co_spawn(executor, pump(self, Flow::kOut), asio::detached);
  // detached: owns a share, as the other
  asio::co_spawn(executor, pump(self, Flow::kIn), asio::detached);
  while (pumps_ > 0) co_await both_done_.async_wait(kToken);
}

Task<void> Relay::run() {
  auto opened = co_await open();
  timer_.cancel();
  if (!opened) {
    co_await refuse(std::move(opened).error());
    co_return;
  }
  co_await carry();
  AuditRow closed = row(AuditEvent::kClosed);
  closed.bytes_out = bytes_out_;
  closed.bytes_in = bytes_in_;
  closed.requests = requests_ ? requests_->requests() : 0;
  closed.reason = end_reason_;
  (void)gate_->record(closed);
  boost::system::error_code ignored;
  inside_.close(ignored);
  outside_.close(ignored);
}

}  // namespace

Task<void> relay_connection(std::shared_ptr<Gate> gate, Fd accepted) {
  auto relay = std::make_shared<Relay>(std::move(gate), std::move(accepted));
  co_await relay->run();
}

}  // namespace atl::egress
