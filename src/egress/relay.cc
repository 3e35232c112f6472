#include "egress/relay.h"

#include <fcntl.h>

#include <boost/asio/write.hpp>

#include "async/spawn.h"
#include "base/log.h"
#include "egress/inspected_tls.h"
#include "egress/relayed_connection.h"

namespace atl::egress {

namespace asio = boost::asio;

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
  if (dialled_ && has_upstream_) made.via = "upstream";
  made.method = method_;
  made.path = path_;
  made.rule = decision_.rule;
  made.connection = number_;
  return made;
}

bool Relay::is_still_allowed() {
  if (!decision_.allowed()) return true;  // nothing was allowed yet
  Decision now = gate_->inspector().decide(destination(), port_);
  // What was said so far was looked at by the rules that were.
  bool same = now.allowed() && now.protocol == decision_.protocol &&
              now.is_inspected == decision_.is_inspected;
  if (dialled_ && through_ != gate_->policy().policy().upstream) return false;
  bool checked = dialled_ && name_ && !has_upstream_;
  if (!same || (checked && !gate_->policy().may_dial(*dialled_, port_))) return false;
  decision_ = now;
  purse_.set_rule(now.index);
  return true;
}

void Relay::end_by(const Error& overdraft) {
  decision_.rule = overdraft.field();
  cut(std::string(overdraft.reason()));
}

void Relay::end_by_request(const Error& error) {
  bool is_budget = !error.field().empty();
  // Of a connection that is not inspected the last row says which budget it was.
  AuditEvent event = decision_.is_inspected ? AuditEvent::kRequest : AuditEvent::kConnect;
  if (decision_.is_inspected || !is_budget) (void)gate_->record(requests_->refusal(event, error));
  if (is_budget) return end_by(error);
  cut(error.reason());
}

bool Relay::note_piece(size_t bytes) {
  return gate_->surroundings().courtesy.passed(gate_.get(), bytes,
                                               std::chrono::steady_clock::now());
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

std::optional<Pipe> Relay::take_pipe() {
  if (!descriptors.grow(Descriptors::kOfPipe)) {
    cut("too_many_connections");
    return std::nullopt;
  }
  auto pipe = gate_->surroundings().pipes.take();
  if (!pipe) return std::nullopt;
  return std::move(*pipe);
}

void Relay::give_back(Pipe pipe) {
  gate_->surroundings().pipes.give_back(std::move(pipe));
  descriptors.shrink(Descriptors::kOfPipe);
}

Task<void> Relay::pump([[maybe_unused]] std::shared_ptr<Relay> self, Flow flow) {
  Socket& from = flow == Flow::kOut ? inside_ : outside_;
  Socket& to = flow == Flow::kOut ? outside_ : inside_;
  uint64_t& bytes = flow == Flow::kOut ? bytes_out_ : bytes_in_;
  asio::steady_timer breath(gate_->surroundings().executor);
  while (from.is_open() && to.is_open()) {
    auto [error] = co_await from.async_wait(Socket::wait_read, kToken);
    if (error) break;
    gate_->surroundings().changes.apply();
    if (!from.is_open() || !to.is_open()) break;
    auto most = purse_.share(from.native_handle(), flow, kPipeBytes);
    if (!most) end_by(most.error());
    if (!most) break;
    auto pipe = take_pipe();
    if (!pipe) break;
    ssize_t count = splice(from.native_handle(), nullptr, pipe->write_end.get(), nullptr, *most,
                           SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (count < 0 && errno == EAGAIN) {
      give_back(std::move(*pipe));
      continue;
    }
    if (count <= 0) {
      boost::system::error_code ignored;
      if (count == 0) to.shutdown(Socket::shutdown_send, ignored);
      if (count < 0) cut("connection_reset");
      give_back(std::move(*pipe));
      note_done();
      co_return;
    }
    purse_.spend(flow, static_cast<uint64_t>(count));
    bool drained = co_await drain(*pipe, static_cast<size_t>(count), to);
    if (!drained) break;
    bytes += static_cast<uint64_t>(count);
    give_back(std::move(*pipe));
    if (!note_piece(static_cast<size_t>(count))) continue;
    breath.expires_after(Courtesy::kBreath);
    co_await breath.async_wait(kToken);
  }
  cut("connection_reset");
  note_done();
}

Task<void> Relay::pump_requests([[maybe_unused]] std::shared_ptr<Relay> self) {
  std::string waiting = std::move(opening_);
  boost::system::error_code ignored;
  while (true) {
    auto passed = requests_->pass(waiting);
    if (!passed) end_by_request(passed.error());
    if (!passed) break;
    if (passed->taken > 0) {
      std::string_view text = std::string_view(waiting).substr(0, passed->taken);
      if (passed->instead) text = *passed->instead;
      asio::const_buffer bytes = asio::buffer(text);
      auto [failed, sent] = co_await asio::async_write(outside_, bytes, kToken);
      bytes_out_ += sent;
      if (failed) break;
      (void)note_piece(sent);
      waiting.erase(0, passed->taken);
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
  if (protocol_ == Protocol::kHttp) requests_.emplace(*gate_, guarded());
  auto paid = requests_ ? Result<void>() : purse_.spend_piece(Flow::kOut, opening_.size());
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
    spawn(executor, pump_requests(self));
  else  // owns a share too
    spawn(executor, pump(self, Flow::kOut));
  // detached: owns a share, as the other
  spawn(executor, pump(self, Flow::kIn));
  while (pumps_ > 0) co_await both_done_.async_wait(kToken);
  if (requests_) request_count_ = requests_->requests();
}

RequestGuard::Connection Relay::guarded() {
  return {.to = destination(),
          .port = port_,
          .purse = purse_,
          .row = row(AuditEvent::kRequest),
          .is_inspected = decision_.is_inspected,
          .transport = protocol_ == Protocol::kTls ? Inspector::Transport::kTls
                                                   : Inspector::Transport::kPlain};
}

Task<void> Relay::carry_inspected() {
  auto server = gate_->inspector().server_for(*name_);
  if (!server) {
    log_error("a connection cannot be inspected", {server.error()});
    cut("inspection_failed");
    co_return;
  }
  InspectedTls::Ends ends{inside_, outside_};
  auto tls = std::make_shared<InspectedTls>(*gate_, ends, guarded(), *server);
  arm(kOpeningTime);
  auto opened = co_await tls->open(std::move(opening_));
  timer_.cancel();
  if (opened) co_await tls->carry();
  if (end_reason_.empty()) end_reason_ = opened ? tls->end_reason() : opened.error().reason();
  if (!tls->end_budget().empty()) decision_.rule = tls->end_budget();
  bytes_out_ = tls->bytes_out();
  bytes_in_ = tls->bytes_in();
  request_count_ = tls->requests();
}

Task<void> Relay::run() {
  auto opened = co_await open();
  timer_.cancel();
  if (!opened) {
    co_await refuse(std::move(opened).error());
    co_return;
  }
  if (decision_.is_inspected && protocol_ == Protocol::kTls)
    co_await carry_inspected();
  else
    co_await carry();
  AuditRow closed = row(AuditEvent::kClosed);
  closed.bytes_out = bytes_out_;
  closed.bytes_in = bytes_in_;
  closed.requests = request_count_;
  closed.reason = end_reason_;
  (void)gate_->record(closed);
  boost::system::error_code ignored;
  inside_.close(ignored);
  outside_.close(ignored);
}

Task<void> relay_connection(std::shared_ptr<Gate> gate, Fd accepted) {
  auto relay = std::make_shared<Relay>(std::move(gate), std::move(accepted));
  co_await relay->run();
}

}  // namespace atl::egress
