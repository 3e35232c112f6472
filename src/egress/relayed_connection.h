// Relay: one TCP connection of a sandbox (relay.h) while it is open. How it begins is in
// relay_opening.cc, how it goes on in relay.cc.
//
// One thread. Its tasks share it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/fd.h"
#include "egress/gate.h"
#include "egress/purse.h"
#include "egress/request_guard.h"
#include "egress/task.h"

namespace atl::egress {

inline constexpr std::chrono::seconds kOpeningTime{15};  // until the first bytes are understood
inline constexpr size_t kReadBytes = 16 * 1024;

class Relay final : public OpenConnection, public std::enable_shared_from_this<Relay> {
 public:
  Relay(std::shared_ptr<Gate> gate, Fd accepted)
      : gate_(std::move(gate)),
        inside_(gate_->surroundings().executor),
        outside_(gate_->surroundings().executor),
        timer_(gate_->surroundings().executor),
        both_done_(gate_->surroundings().executor, boost::asio::steady_timer::time_point::max()),
        purse_(gate_->spending()) {
    number_ = gate_->connections().next_number();
    boost::system::error_code error;
    inside_.assign(boost::asio::ip::tcp::v4(), accepted.get(), error);
    if (!error) (void)accepted.release();
  }
  ~Relay() override { gate_->connections().leave(this); }

  // Until both sides are done.
  Task<void> run();

  bool is_still_allowed() override;
  void cut(const std::string& reason) override {
    if (end_reason_.empty()) end_reason_ = reason;
    close_both();
  }
  void revoke() override {
    boost::system::error_code ignored;
    outside_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
    cut("policy_changed");
  }
  SteadyTime last_used() const override { return purse_.last_used(); }

 private:
  using Socket = boost::asio::ip::tcp::socket;

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
  // A request may not go on.
  void end_by_request(const Error& error);
  AuditRow row(AuditEvent event) const;
  Task<void> refuse(Error error);

  RequestGuard::Connection guarded();
  Task<void> carry_inspected();
  Task<void> carry();
  Task<void> pump([[maybe_unused]] std::shared_ptr<Relay> self, Flow flow);
  Task<void> pump_requests([[maybe_unused]] std::shared_ptr<Relay> self);
  Task<bool> drain(Pipe& pipe, size_t left, Socket& to);
  // A pipe for what is passed on; nothing: the connection is cut.
  std::optional<Pipe> take_pipe();
  void give_back(Pipe pipe);
  void arm(std::chrono::seconds time);
  // True: take a breath before the next.
  [[nodiscard]] bool note_piece(size_t bytes);
  void note_done();
  void close_both();

  std::shared_ptr<Gate> gate_;
  Socket inside_, outside_;
  boost::asio::steady_timer timer_, both_done_;
  uint64_t number_ = 0;
  // Where it goes: one of both.
  std::optional<HostName> name_;
  std::optional<Address> literal_;
  bool is_proxied_ = false;   // the program has asked us, as its proxy
  bool asks_by_url_ = false;  // by a request for a whole URL, not by CONNECT
  std::string destination_;
  std::optional<Address> dialled_;
  std::optional<UpstreamUse> through_;  // the policy's proxy when it was dialled
  bool has_upstream_ = false;           // the address that was dialled is that of a proxy
  uint16_t port_ = 0;
  Decision decision_;
  Protocol protocol_ = Protocol::kTcp;
  std::optional<Protocol> learned_;  // what would have been spoken
  std::string opening_;              // bytes from inside that did not go on yet
  std::optional<RequestGuard> requests_;
  std::string method_, path_;  // of a first request that was refused
  Purse purse_;
  uint64_t bytes_out_ = 0, bytes_in_ = 0, request_count_ = 0;
  unsigned pumps_ = 0;
  std::string end_reason_;
};

}  // namespace atl::egress
