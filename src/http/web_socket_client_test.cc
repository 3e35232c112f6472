#include "http/web_socket_client.h"

#include "http/test_server.h"

namespace atl::http {
namespace {

const milliseconds kTimeout = test_timeout();

// Sends every message back; the text "bye" closes, "drop" hangs up, "refuse" in the path refuses.
Task<void> echo(Exchange& exchange) {
  if (exchange.request().path == "/refuse") {
    Response response = text_response(409, "attached");
    static_cast<void>(co_await exchange.reply(std::move(response)));
    co_return;
  }
  auto web_socket = co_await exchange.accept_web_socket();
  if (!web_socket.ok()) co_return;
  for (;;) {
    Result<WebSocket::Message> message = co_await (*web_socket)->read();
    if (!message.ok() || message->data == "drop") co_return;
    if (message->data == "bye") {
      static_cast<void>(co_await (*web_socket)->close(4001, "bye"));
      co_return;
    }
    auto kind = message->kind;
    static_cast<void>(co_await (*web_socket)->write(kind, message->data));
  }
}

Result<WebSocketClient::Opened> open_at(unsigned short port, const std::string& target = "/") {
  return WebSocketClient::open({"127.0.0.1", port, target}, {{"X", "y"}}, kTimeout);
}

// Pumps until `done`, or for the timeout.
template <typename Done>
Result<void> pump_until(WebSocketClient& client, Done done) {
  auto end = TestClock::now() + kTimeout;
  while (!done()) {
    if (TestClock::now() > end) return Error(Code::kTimeout, "pump");
    pollfd state{.fd = client.fd(), .events = client.wanted_events(), .revents = 0};
    poll(&state, 1, 100);
    ATOLL_TRY_VOID(client.pump());
  }
  return {};
}

TEST(WebSocketClient, MessagesOfEverySizeComeBack) {
  TestServer server(echo);
  auto opened = open_at(server.port());
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  WebSocketClient& client = *opened->socket;
  for (size_t size : {0, 1, 125, 126, 65535, 65536, 1'000'000}) {
    std::string data(size, '\xfe');
    client.queue(WebSocket::Kind::kBinary, data);
    std::optional<WebSocket::Message> message;
    auto came = pump_until(client, [&] { return (message = client.next()).has_value(); });
    ASSERT_TRUE(came.ok()) << size << " " << came.error().message();
    EXPECT_EQ(message->kind, WebSocket::Kind::kBinary);
    EXPECT_EQ(message->data, data);
  }
  client.queue(WebSocket::Kind::kText, "{}");
  std::optional<WebSocket::Message> text;
  ASSERT_TRUE(pump_until(client, [&] { return (text = client.next()).has_value(); }).ok());
  EXPECT_EQ(text->kind, WebSocket::Kind::kText);
}

TEST(WebSocketClient, SeesTheCodeOfTheClose) {
  TestServer server(echo);
  auto opened = open_at(server.port());
  ASSERT_TRUE(opened.ok());
  opened->socket->queue(WebSocket::Kind::kText, "bye");
  ASSERT_TRUE(pump_until(*opened->socket, [&] { return opened->socket->close_code(); }).ok());
  EXPECT_EQ(opened->socket->close_code(), 4001u);
}

TEST(WebSocketClient, HandsOverTheAnswerOfARefusal) {
  TestServer server(echo);
  auto opened = open_at(server.port(), "/refuse");
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(opened->socket, nullptr);
  EXPECT_EQ(opened->refusal.status, 409);
  EXPECT_EQ(opened->refusal.body, "attached");
}

// A server that says exact bytes after a proper upgrade.
class Liar {
 public:
  explicit Liar(std::string bytes) : bytes_(std::move(bytes)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), any, size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), any, &size), 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      RawPeer peer(Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
      peer.read_until("\r\n\r\n");
      peer.send(bytes_);
      peer.is_closed_in_time();
    });
  }
  ~Liar() { thread_.join(); }
  unsigned short port = 0;

 private:
  std::string bytes_;
  Fd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::thread thread_;
};

TEST(WebSocketClient, RefusesAnUpgradeThatAnswersAnotherKey) {
  Liar liar(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  EXPECT_EQ(open_at(liar.port).error().code(), Code::kCorrupt);
}

TEST(WebSocketClient, SaysWhenTheServerIsGone) {
  TestServer server(echo);
  auto opened = open_at(server.port());
  ASSERT_TRUE(opened.ok());
  opened->socket->queue(WebSocket::Kind::kText, "drop");
  auto ended = pump_until(*opened->socket, [&] { return opened->socket->close_code(); });
  // With a close frame or without one, but not by waiting.
  EXPECT_EQ(ended.ok() ? Code::kUnavailable : ended.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace atl::http
