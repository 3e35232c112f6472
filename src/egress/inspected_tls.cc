#include "egress/inspected_tls.h"

#include <array>

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include "async/spawn.h"
#include "egress/refusal_page.h"
#include "egress/server_trust.h"

namespace atl::egress {

namespace asio = boost::asio;

namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr std::chrono::seconds kPartingTime{1};

Error failed(const char* reason) { return Error(Code::kDenied, reason).with_reason(reason); }

}  // namespace

InspectedTls::InspectedTls(Gate& gate, Ends ends, RequestGuard::Connection connection,
                           std::shared_ptr<CertificateAuthority::Context> server)
    : gate_(gate),
      ends_(ends),
      name_(std::get<HostName>(connection.to)),
      server_(std::move(server)),
      inside_(ends.inside, *server_),
      outside_(ends.outside, *gate.surroundings().client_tls),
      purse_(connection.purse),
      guard_(gate, std::move(connection)),
      both_done_(gate.surroundings().executor, asio::steady_timer::time_point::max()) {}

Task<Result<void>> InspectedTls::greet_server() {
  ATOLL_CO_TRY_VOID(expect_server(outside_.native_handle(), name_));
  auto [error] = co_await outside_.async_handshake(Stream::client, kToken);
  if (!error) co_return Result<void>();
  bool refused = SSL_get_verify_result(outside_.native_handle()) != X509_V_OK;
  co_return failed(refused ? "certificate_refused" : "server_tls_failed");
}

Task<Result<void>> InspectedTls::greet_client(std::string opening) {
  asio::const_buffer first = asio::buffer(opening);
  auto [error, taken] = co_await inside_.async_handshake(Stream::server, first, kToken);
  if (error) co_return failed("client_tls_failed");
  // Nobody can say anything before the server's first words.
  if (taken != opening.size()) co_return failed("bad_hello");
  co_return Result<void>();
}

Task<Result<void>> InspectedTls::open(std::string opening) {
  auto server = co_await greet_server();
  if (!server && !ends_.outside.is_open()) co_return server;  // cut
  auto client = co_await greet_client(std::move(opening));
  if (!client) co_return client;
  if (!server) {
    // Once it has asked: a page that comes before the question is lost.
    std::array<char, kReadBytes> question;
    asio::mutable_buffer room = asio::buffer(question);
    (void)co_await inside_.async_read_some(room, kToken);
    std::string page = refusal_page("502 Bad Gateway", server.error().reason());
    co_await tell_client(std::move(page));
  }
  co_return server;
}

Task<void> InspectedTls::tell_client(std::string page) {
  asio::const_buffer bytes = asio::buffer(page);
  auto [error, sent] = co_await asio::async_write(inside_, bytes, kToken);
  boost::system::error_code ignored;
  if (!error) ends_.inside.shutdown(Socket::shutdown_send, ignored);
  // What still comes is taken: to close on it would take the page away from the client.
  asio::steady_timer parting(gate_.surroundings().executor, kPartingTime);
  parting.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
    boost::system::error_code closing;
    if (!cancelled) self->ends_.inside.close(closing);
  });
  std::array<char, kReadBytes> rest;
  asio::mutable_buffer room = asio::buffer(rest);
  boost::system::error_code ended = error;
  while (!ended) {
    auto [failed_read, count] = co_await ends_.inside.async_read_some(room, kToken);
    ended = failed_read;
  }
  parting.cancel();
  ends_.inside.close(ignored);
}

void InspectedTls::end(const std::string& reason) {
  if (end_reason_.empty()) end_reason_ = reason;
  boost::system::error_code ignored;
  ends_.inside.close(ignored);
  ends_.outside.close(ignored);
}

Task<void> InspectedTls::refuse(Error error) {
  const std::string& reason = error.reason();
  (void)gate_.record(guard_.refusal(AuditEvent::kRequest, error));
  is_refusing_ = true;
  if (end_reason_.empty()) end_budget_ = error.field();
  if (!is_answering_ && ends_.inside.is_open()) {
    std::string page = refusal_page(refusal_status(reason), reason);
    co_await tell_client(std::move(page));
  }
  end(reason);
}

void InspectedTls::note_done() {
  if (--pumps_ == 0) both_done_.cancel();
}

Task<bool> InspectedTls::send_on(std::string& waiting, RequestGuard::Passed passed) {
  std::string_view text = std::string_view(waiting).substr(0, passed.taken);
  if (passed.instead) text = *passed.instead;
  asio::const_buffer bytes = asio::buffer(text);
  auto [error, sent] = co_await asio::async_write(outside_, bytes, kToken);
  bytes_out_ += sent;
  waiting.erase(0, passed.taken);
  co_return !error;
}

Task<void> InspectedTls::pump_requests([[maybe_unused]] std::shared_ptr<InspectedTls> self) {
  std::string waiting;
  boost::system::error_code ignored;
  while (true) {
    auto passed = guard_.pass(waiting);
    if (!passed) {
      Error error = std::move(passed).error();
      co_await refuse(std::move(error));
      break;
    }
    if (passed->taken > 0) {
      RequestGuard::Passed piece = std::move(*passed);
      bool sent = co_await send_on(waiting, std::move(piece));
      if (sent) continue;
      end("connection_reset");
      break;
    }
    size_t had = waiting.size();
    waiting.resize(had + kReadBytes);
    asio::mutable_buffer room(waiting.data() + had, kReadBytes);
    auto [error, count] = co_await inside_.async_read_some(room, kToken);
    waiting.resize(had + count);
    if (!error) continue;
    if (is_finished_) break;
    // The client has said all; the server may still be answering.
    bool said_all = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    if (said_all)
      ends_.outside.shutdown(Socket::shutdown_send, ignored);
    else
      end("connection_reset");
    break;
  }
  note_done();
}

Task<void> InspectedTls::pump_answers([[maybe_unused]] std::shared_ptr<InspectedTls> self) {
  std::array<char, kReadBytes> buffer;
  boost::system::error_code ignored;
  while (!is_refusing_) {
    asio::mutable_buffer room = asio::buffer(buffer);
    auto [error, count] = co_await outside_.async_read_some(room, kToken);
    gate_.surroundings().changes.apply();
    if (is_refusing_) break;
    if (error == asio::error::eof) {
      is_finished_ = true;
      // Nothing can be answered any more, so nothing is asked either.
      ends_.inside.cancel(ignored);
      break;
    }
    if (error) {
      // Cut off or not, the client sees no end that the server did not say.
      end(error == asio::ssl::error::stream_truncated ? "" : "connection_reset");
      break;
    }
    auto paid = purse_.spend_piece(Flow::kIn, count);
    if (!paid) {
      if (end_reason_.empty()) end_budget_ = paid.error().field();
      end(std::string(paid.error().reason()));
      break;
    }
    is_answering_ = true;
    asio::const_buffer bytes = asio::buffer(buffer.data(), count);
    auto [failed_write, sent] = co_await asio::async_write(inside_, bytes, kToken);
    is_answering_ = false;
    bytes_in_ += sent;
    if (failed_write) {
      end("connection_reset");
      break;
    }
  }
  note_done();
}

Task<void> InspectedTls::carry() {
  auto self = shared_from_this();
  auto executor = gate_.surroundings().executor;
  pumps_ = 2;
  // detached: each owns a share of this, and carry() waits for both
  spawn(executor, pump_requests(self));
  // detached: owns a share, as the other
  spawn(executor, pump_answers(self));
  while (pumps_ > 0) co_await both_done_.async_wait(kToken);
  if (!is_finished_ || !ends_.inside.is_open()) co_return;
  // The server's last word is passed on too: a body may have no other end.
  both_done_.expires_after(kPartingTime);
  both_done_.async_wait([self](boost::system::error_code error) {
    if (!error) self->end("");
  });
  co_await inside_.async_shutdown(kToken);
  both_done_.cancel();
}

}  // namespace atl::egress
