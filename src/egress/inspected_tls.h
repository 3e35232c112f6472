// InspectedTls: a TLS connection of a sandbox that is ended here, on both sides: inside we are the
// server, with a certificate of the sandbox's own authority; outside we are the client and believe
// only a certificate for the name. In between, HTTP/1.1 requests pass one by one through a
// RequestGuard; answers pass as they are.
//
// The sockets are borrowed: whoever owns them outlives this and may close them to end it.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>

#include "egress/request_guard.h"
#include "egress/task.h"

namespace atl::egress {

class InspectedTls : public std::enable_shared_from_this<InspectedTls> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  struct Ends {
    Socket& inside;
    Socket& outside;
  };
  InspectedTls(Gate& gate, Ends ends, RequestGuard::Connection connection,
               std::shared_ptr<CertificateAuthority::Context> server);

  // Both handshakes; `opening` is what the client has sent so far. A client whose server is not
  // believed or does not answer is told so.
  Task<Result<void>> open(std::string opening);
  // Until both sides are done.
  Task<void> carry();

  // Of what was said, not of the bytes of TLS.
  uint64_t bytes_out() const { return bytes_out_; }
  uint64_t bytes_in() const { return bytes_in_; }
  uint64_t requests() const { return guard_.requests(); }
  // Why it ended; empty: both sides were done.
  const std::string& end_reason() const { return end_reason_; }
  // The budget that ended it; empty: none.
  const std::string& end_budget() const { return end_budget_; }

 private:
  using Stream = boost::asio::ssl::stream<Socket&>;

  Task<Result<void>> greet_server();
  Task<Result<void>> greet_client(std::string opening);
  Task<void> pump_requests(std::shared_ptr<InspectedTls> self);
  Task<void> pump_answers(std::shared_ptr<InspectedTls> self);
  Task<bool> send_on(std::string& waiting, RequestGuard::Passed passed);
  Task<void> refuse(Error error);
  Task<void> tell_client(std::string page);
  void end(const std::string& reason);
  void note_done();

  Gate& gate_;
  Ends ends_;
  const HostName name_;
  std::shared_ptr<CertificateAuthority::Context> server_;
  Stream inside_, outside_;
  Purse& purse_;
  RequestGuard guard_;
  boost::asio::steady_timer both_done_;
  uint64_t bytes_out_ = 0, bytes_in_ = 0;
  unsigned pumps_ = 0;
  bool is_answering_ = false;  // bytes of an answer are being written
  bool is_refusing_ = false;   // no answer is written any more
  bool is_finished_ = false;   // the server said that it is done
  std::string end_reason_, end_budget_;
};

}  // namespace atl::egress
