#include "http/relay.h"

#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "http/test_server.h"
#include "http/wire.h"

namespace atl::http {
namespace {

namespace asio = boost::asio;

class SocketUpstream final : public Upstream {
 public:
  explicit SocketUpstream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  Task<Result<std::string>> read() override {
    std::string bytes(4096, '\0');
    asio::mutable_buffer into = asio::buffer(bytes);
    auto [error, count] = co_await socket_.async_read_some(into, kAwait);
    if (error && error != asio::error::eof) co_return Error(Code::kUnavailable, error.message());
    bytes.resize(count);
    co_return bytes;
  }
  Task<Result<void>> write(std::string_view bytes) override {
    asio::const_buffer buffer(bytes.data(), bytes.size());
    auto [error, count] = co_await asio::async_write(socket_, buffer, kAwait);
    if (error) co_return Error(Code::kUnavailable, error.message());
    co_return Result<void>();
  }
  void end_writing() override {
    boost::system::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
};

// A server that hands every request on to the one at `port`.
struct RelayTo {
  unsigned short port;
  milliseconds end_patience{10'000};
  Origin origin = Origin::kOwn;
  Task<void> operator()(Exchange& exchange) const {
    auto executor = co_await asio::this_coro::executor;
    asio::ip::tcp::socket socket(executor);
    asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    auto [error] = co_await socket.async_connect(endpoint, kAwait);
    EXPECT_FALSE(error);
    SocketUpstream upstream(std::move(socket));
    RelayRequest request{.target = exchange.request().target,
                         .host = "localhost:1",
                         .for_upstream = Headers(),
                         .for_client = Headers()};
    request.for_client.add("Added", "yes");
    request.end_patience = end_patience;
    request.origin = origin;
    auto relayed = co_await relay(exchange, upstream, std::move(request));
    if (relayed) co_return;
    Response response = text_response(502, relayed.error().message());
    static_cast<void>(co_await exchange.reply(std::move(response)));
  }
};

// Another server that says only what a test makes it say.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
  }
  unsigned short port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }
  RawPeer accept() { return RawPeer(Fd(::accept(fd_.get(), nullptr, nullptr))); }

 private:
  Fd fd_;
};

// Tells what it was asked, and sends the body back.
Task<void> echo(Exchange& exchange) {
  Response response;
  for (const auto& [name, value] : exchange.request().headers.fields())
    response.headers.add("Got-" + name, value);
  response.headers.add("Target", exchange.request().target);
  response.headers.add("Set-Cookie", "a=b");
  auto body = co_await exchange.read_body(8 << 20);
  if (body) response.body = std::move(*body);
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST(Relay, KeepsWhatIsPrivateFromTheOtherServerAndItsCookiesFromTheClient) {
  TestServer upstream(echo);
  TestServer server(RelayTo{upstream.port()});
  RawPeer peer(server.port());
  peer.send(
      "GET /a%20b?c=d HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer key\r\nCookie: x=y\r\n"
      "Connection: close, Hop\r\nHop: 1\r\nUser-Agent: test\r\n\r\n");
  std::string answer = peer.read_to_end();
  EXPECT_TRUE(has(answer, "HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(has(answer, "Target: /a%20b?c=d\r\n"));
  EXPECT_TRUE(has(answer, "Got-Host: localhost:1\r\n"));
  EXPECT_TRUE(has(answer, "Got-User-Agent: test\r\n"));
  EXPECT_TRUE(has(answer, "Added: yes\r\n"));
  for (std::string_view withheld : {"key", "x=y", "Hop", "a=b"})
    EXPECT_FALSE(has(answer, withheld)) << withheld << " in " << answer;
}

constexpr std::string_view kAboutTheOrigin[] = {"Alt-Svc",
                                                "Strict-Transport-Security",
                                                "NEL",
                                                "Report-To",
                                                "Reporting-Endpoints",
                                                "WWW-Authenticate",
                                                "Access-Control-Allow-Origin",
                                                "Access-Control-Allow-Credentials",
                                                "Set-Login",
                                                "Public-Key-Pins",
                                                "Use-As-Dictionary",
                                                "Set-Cookie",
                                                "Clear-Site-Data",
                                                "Service-Worker-Allowed",
                                                "Origin-Agent-Cluster",
                                                "X-Accel-Redirect",
                                                "X-Not-Known-Yet"};

Task<void> speak_for_the_origin(Exchange& exchange) {
  Response response = text_response(200, "body");
  for (std::string_view name : kAboutTheOrigin) response.headers.add(std::string(name), "evil");
  for (const char* name : {"ETag", "Cache-Control", "Location", "X-Request-Id"})
    response.headers.add(name, "fine");
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

TEST(Relay, OnASharedOriginPassesOnlyWhatSpeaksForTheAnswer) {
  TestServer upstream(speak_for_the_origin);
  TestServer server(RelayTo{.port = upstream.port(), .origin = Origin::kShared});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string answer = peer.read_to_end();
  EXPECT_FALSE(has(answer, "evil")) << answer;
  for (std::string_view passed : {"ETag: fine", "Cache-Control: fine", "Location: fine",
                                  "X-Request-Id: fine", "Content-Type: text/plain", "Added: yes"})
    EXPECT_TRUE(has(answer, passed)) << passed << " in " << answer;
}

TEST(Relay, OnAnOriginOfItsOwnPassesMoreButNoCookies) {
  TestServer upstream(speak_for_the_origin);
  TestServer server(RelayTo{.port = upstream.port(), .origin = Origin::kOwn});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string answer = peer.read_to_end();
  EXPECT_TRUE(has(answer, "Access-Control-Allow-Origin: evil")) << answer;
  for (std::string_view withheld : {"Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed"})
    EXPECT_FALSE(has(answer, withheld)) << withheld << " in " << answer;
}

TEST(Relay, PassesBodiesOfBothKinds) {
  TestServer upstream(echo);
  TestServer server(RelayTo{upstream.port()});
  std::string body(3 << 20, 'x');
  RawPeer peer(server.port());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n");
  peer.send(body);
  EXPECT_TRUE(has(peer.read_until("\r\n\r\n"), "Content-Length: 3145728\r\n"));
  EXPECT_EQ(peer.read_exactly(body.size()), body);
  peer.send("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  peer.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(has(peer.read_until("\r\n\r\n"), "Got-Transfer-Encoding: chunked"));
  EXPECT_EQ(peer.read_exactly(5), "abcde");
}

TEST(Relay, CutsAnAnswerThatBreaksOff) {
  auto half = [](Exchange& exchange) -> Task<void> {
    Headers headers;
    headers.add("Content-Length", "10");
    static_cast<void>(co_await exchange.start_stream(200, headers));
    static_cast<void>(co_await exchange.write("12345"));
  };
  TestServer upstream(half);
  TestServer server(RelayTo{upstream.port()});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  std::string answer = peer.read_to_end();
  EXPECT_TRUE(has(answer, "Content-Length: 10\r\n"));
  EXPECT_TRUE(answer.ends_with("12345"));
}

TEST(Relay, EndsWhenTheOtherServerAnswersWithoutReadingTheBody) {
  auto hasty = [](Exchange& exchange) -> Task<void> {
    Response response = text_response(403, "no");
    response.headers.add("Connection", "close");
    static_cast<void>(co_await exchange.reply(std::move(response)));
  };
  TestServer upstream(hasty);
  TestServer server(RelayTo{upstream.port()});
  RawPeer peer(server.port());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\nsome");
  EXPECT_TRUE(has(peer.read_until("\r\n\r\nno"), "HTTP/1.1 403"));
  EXPECT_TRUE(server.has_connections_in_time(0));
}

TEST(Relay, TellsOfAServerThatDoesNotSpeakHttp) {
  Listener listener;
  TestServer server(RelayTo{listener.port()});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  {
    RawPeer stranger = listener.accept();
    stranger.send("220 hello\r\n\r\n");
  }
  EXPECT_TRUE(has(peer.read_to_end(), "HTTP/1.1 502"));
}

// What the client sends before it goes, what the silent server has said by then, and what it sees.
TEST(Relay, EndsWithItsClientHoweverSilentTheServer) {
  constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\n\r\n";
  struct {
    const char* what;
    std::string_view request, answer;
  } const kCases[] = {
      {"no answer", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""},
      {"half an answer", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", kHead},
      {"a body", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", ""},
      {"half a body", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx", kHead},
      {"a chunk", "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx", ""},
  };
  for (const auto& [what, request, answer] : kCases) {
    Listener listener;
    TestServer server(RelayTo{listener.port()});
    RawPeer peer(server.port());
    peer.send(request);
    RawPeer silent = listener.accept();
    EXPECT_NE(silent.read_until("\r\n\r\n"), "") << what;
    silent.send(answer);
    std::string head = answer.empty() ? "" : peer.read_until("\r\n\r\n");
    EXPECT_EQ(has(head, "200"), !answer.empty()) << what;
    peer.close();
    silent.read_to_end();
    EXPECT_TRUE(server.has_connections_in_time(0)) << what;
  }
}

TEST(Relay, TellsOfABodyThatDoesNotCome) {
  Limits limits;
  limits.body_time = milliseconds(50);
  Listener listener;
  TestServer server(RelayTo{listener.port()}, limits);
  RawPeer peer(server.port());
  peer.send("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx");
  RawPeer silent = listener.accept();
  EXPECT_TRUE(has(peer.read_to_end(), "HTTP/1.1 502"));
  silent.read_to_end();
}

TEST(Relay, RefusesAnUpgradeThatNobodyAskedFor) {
  Listener listener;
  TestServer server(RelayTo{listener.port()});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  RawPeer stranger = listener.accept();
  stranger.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
  std::string answer = peer.read_to_end();
  EXPECT_TRUE(has(answer, "HTTP/1.1 502"));
  EXPECT_FALSE(has(answer, "200 OK"));
}

// Speaks for longer than a relay waits in silence. False when the host was so busy that it was
// silent for as long, which says nothing about the relay.
bool tunnel_lasts_while_the_server_speaks() {
  constexpr milliseconds kPatience{500};
  Listener listener;
  TestServer server(RelayTo{listener.port(), kPatience});
  RawPeer peer(server.port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
  RawPeer speaker = listener.accept();
  speaker.read_until("\r\n\r\n");
  auto silent_since = TestClock::now();
  speaker.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  EXPECT_TRUE(has(peer.read_until("\r\n\r\n"), "HTTP/1.1 101"));
  peer.end_sending();
  speaker.read_to_end();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(milliseconds(40));
    auto sent_at = TestClock::now();
    speaker.send("still here");
    std::string heard = peer.read_exactly(10);
    // The relay has passed this on by now, and the piece before it not earlier than that was sent.
    if (TestClock::now() - silent_since >= kPatience) return false;
    EXPECT_EQ(heard, "still here");
    silent_since = sent_at;
  }
  EXPECT_EQ(peer.read_to_end(), "");
  EXPECT_TRUE(server.has_connections_in_time(0));
  return true;
}

TEST(Relay, ATunnelWhoseClientHasEndedLastsWhileTheServerSpeaks) {
  EXPECT_TRUE(eventually(tunnel_lasts_while_the_server_speaks));
}

TEST(Relay, CarriesAWebSocket) {
  auto repeat = [](Exchange& exchange) -> Task<void> {
    auto web_socket = co_await exchange.accept_web_socket();
    if (!web_socket) co_return;
    auto message = co_await (*web_socket)->read();
    while (message) {
      static_cast<void>(co_await (*web_socket)->write(message->kind, message->data));
      message = co_await (*web_socket)->read();
    }
  };
  TestServer upstream(repeat);
  TestServer server(RelayTo{upstream.port()});
  RawPeer peer(server.port());
  peer.send(
      "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
  std::string head = peer.read_until("\r\n\r\n");
  EXPECT_TRUE(has(head, "HTTP/1.1 101"));
  EXPECT_TRUE(has(head, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  // "hi", masked by zeros, and its echo without a mask.
  peer.send(std::string_view("\x81\x82\0\0\0\0hi", 8));
  EXPECT_EQ(peer.read_exactly(4), "\x81\x02hi");
  peer.close();
  EXPECT_TRUE(server.has_connections_in_time(0));
  EXPECT_TRUE(upstream.has_connections_in_time(0));
}

}  // namespace
}  // namespace atl::http
