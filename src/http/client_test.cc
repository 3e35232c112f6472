#include "http/client.h"

#include <atomic>
#include <vector>

#include "http/test_server.h"

namespace atl::http {
namespace {

const milliseconds kTimeout = test_timeout();

std::unique_ptr<Client> client_for(unsigned short port, milliseconds timeout = kTimeout) {
  return Client::create("127.0.0.1", port, timeout);
}

Task<void> echo(Exchange& exchange) {
  auto body = co_await exchange.read_body(64 * 1024 * 1024);
  Response response = text_response(201, body.ok() ? std::move(*body) : "error");
  response.headers.add("X-Path", exchange.request().target);
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

// A server that sends exact bytes: answers each connection in turn with the next text, then closes.
class Script {
 public:
  explicit Script(std::vector<std::string> answers) : answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_.get(), any, size), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    EXPECT_EQ(getsockname(listener_.get(), any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { play(); });
  }
  ~Script() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  unsigned short port() const { return port_; }
  int requests() const { return requests_; }

 private:
  void play() {
    for (const std::string& answer : answers_) {
      RawPeer peer(Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
      if (!peer.read_until("\r\n\r\n").empty()) ++requests_;
      peer.send(answer);
    }
  }

  std::vector<std::string> answers_;
  std::atomic<int> requests_ = 0;
  Fd listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  unsigned short port_ = 0;
  std::thread thread_;
};

TEST(Client, SendsAndReceivesOverOneConnection) {
  TestServer server(echo);
  auto client = client_for(server.port());
  for (size_t size : {0, 5, 100'000, 20'000'000}) {
    std::string body(size, 'b');
    auto response = client->send(Method::kPost, "/x?y=z", {{"A", "b"}}, body);
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->status, 201);
    EXPECT_EQ(response->headers.find("x-path"), "/x?y=z");
    EXPECT_EQ(response->body, body);
    EXPECT_EQ(server.open_connections(), 1u);
  }
  auto head = client->send(Method::kHead, "/", {}, "");
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->body, "");
  EXPECT_TRUE(client->send(Method::kGet, "/", {}, "").ok());
  EXPECT_EQ(server.open_connections(), 1u);
}

TEST(Client, UploadsABodyWhileItIsMade) {
  TestServer server(echo);
  auto client = client_for(server.port());
  for (bool length_is_known : {true, false}) {
    size_t left = 5'000'001;
    auto source = [&](std::span<char> piece) -> Result<size_t> {
      size_t count = std::min(piece.size(), left);
      std::fill_n(piece.begin(), count, 'u');
      left -= count;
      return count;
    };
    std::optional<uint64_t> bytes = length_is_known ? std::optional<uint64_t>(left) : std::nullopt;
    auto response = client->upload(Method::kPut, "/u", {}, {source, bytes});
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->body, std::string(5'000'001, 'u'));
  }
  EXPECT_EQ(server.open_connections(), 1u);
}

TEST(Client, AnUploadThatIsShorterOrLongerThanSaidFails) {
  TestServer server(echo);
  for (uint64_t said : {3, 1000}) {
    int pieces = 1;
    auto source = [&](std::span<char> piece) -> Result<size_t> {
      std::fill_n(piece.begin(), 10, 'u');
      return pieces-- > 0 ? 10 : 0;
    };
    auto response = client_for(server.port())->upload(Method::kPut, "/", {}, {source, said});
    EXPECT_EQ(response.error().code(), Code::kConflict) << said;
  }
}

TEST(Client, DecodesChunkedAnswers) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    static_cast<void>(co_await exchange.start_stream(200, Headers()));
    std::string chunk(10'000, 'c');
    for (int i = 0; i < 100; ++i) static_cast<void>(co_await exchange.write(chunk));
    static_cast<void>(co_await exchange.finish());
  });
  auto client = client_for(server.port());
  for (int i = 0; i < 2; ++i) {
    auto response = client->send(Method::kGet, "/", {}, "");
    ASSERT_TRUE(response.ok()) << response.error().message();
    EXPECT_EQ(response->body, std::string(1'000'000, 'c'));
  }
}

TEST(Client, StreamHandsOverBytesAsTheyCome) {
  std::promise<void> first_seen;
  auto may_go_on = first_seen.get_future();
  TestServer server([&](Exchange& exchange) -> Task<void> {
    static_cast<void>(co_await start_events(exchange));
    static_cast<void>(co_await exchange.write("data: 1\n\n"));
    may_go_on.wait();
    static_cast<void>(co_await exchange.write("data: 2\n\n"));
    static_cast<void>(co_await exchange.finish());
  });
  auto client = client_for(server.port());
  std::string seen;
  auto on_bytes = [&](const Response& head, std::string_view bytes) {
    EXPECT_EQ(head.status, 200);
    if (seen.empty()) first_seen.set_value();
    seen += bytes;
    return true;
  };
  auto response = client->stream(Method::kGet, "/", {}, "", on_bytes);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->headers.find("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(seen, "data: 1\n\ndata: 2\n\n");
}

TEST(Client, StreamCanBeLeft) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    static_cast<void>(co_await start_events(exchange));
    while ((co_await exchange.write("data: x\n\n")).ok()) continue;
  });
  auto client = client_for(server.port());
  auto leave = [](const Response&, std::string_view) { return false; };
  auto response = client->stream(Method::kGet, "/", {}, "", leave);
  EXPECT_TRUE(response.ok());
  EXPECT_TRUE(server.has_connections_in_time(0));
}

TEST(Client, ReconnectsWhenTheIdleConnectionWasClosed) {
  TestServer server(echo, Limits{.idle_time = milliseconds(50)});
  auto client = client_for(server.port());
  EXPECT_TRUE(client->send(Method::kPost, "/", {}, "a").ok());
  ASSERT_TRUE(server.has_connections_in_time(0));
  auto again = client->send(Method::kPost, "/", {}, "b");
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->body, "b");
}

TEST(Client, SecondServerOnTheSamePortIsReached) {
  auto first = std::make_unique<TestServer>(echo);
  auto client = client_for(first->port());
  EXPECT_TRUE(client->send(Method::kGet, "/", {}, "").ok());
  first.reset();
  EXPECT_EQ(client->send(Method::kGet, "/", {}, "").error().code(), Code::kUnavailable);
}

TEST(Client, TimesOut) {
  // The backlog takes the connection; nobody ever answers.
  boost::asio::io_context context;
  auto silent = Server::listen(context, "127.0.0.1", 0, Rules{});
  ASSERT_TRUE(silent.ok());
  auto client = client_for((*silent)->port(), milliseconds(100));
  auto begin = TestClock::now();
  auto response = client->send(Method::kGet, "/", {}, "");
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code(), Code::kTimeout);
  EXPECT_GE(TestClock::now() - begin, milliseconds(100));
}

TEST(Client, SaysWhenNobodyListens) {
  auto client = client_for(1);
  EXPECT_EQ(client->send(Method::kGet, "/", {}, "").error().code(), Code::kUnavailable);
}

TEST(Client, SkipsInterimAnswersAndReadsToTheEnd) {
  Script script({"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\nto the end"});
  auto response = client_for(script.port())->send(Method::kGet, "/", {}, "");
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body, "to the end");
}

TEST(Client, RefusesBadAnswers) {
  struct Case {
    std::string answer;
    Code code;
  };
  for (const Case& bad :
       {Case{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Code::kUnavailable},
        Case{"", Code::kUnavailable}, Case{"HTTP/1.1 2", Code::kUnavailable},
        Case{"SSH-2.0-OpenSSH\r\n\r\n", Code::kCorrupt},
        Case{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
             Code::kCorrupt},
        Case{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), Code::kExhausted}}) {
    Script script({bad.answer});
    auto response = client_for(script.port())->send(Method::kGet, "/", {}, "");
    ASSERT_FALSE(response.ok()) << bad.answer;
    EXPECT_EQ(response.error().code(), bad.code) << response.error().message();
  }
}

TEST(Client, AnswerBeforeTheBodyWasReadIsSeen) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response response = text_response(413, "too long");
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  auto client = client_for(server.port());
  auto response = client->send(Method::kPut, "/", {}, std::string(3'000'000, 'x'));
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(response->body, "too long");
}

TEST(Client, LongAnswerThatComesWhileSendingDoesNotBlock) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    static_cast<void>(co_await exchange.start_stream(200, Headers()));
    std::string part(32 * 1024, '\0');
    for (;;) {
      auto count = co_await exchange.read_body_some(part);
      if (!count.ok() || *count == 0) break;
      std::string_view bytes(part.data(), *count);
      static_cast<void>(co_await exchange.write(bytes));
    }
    static_cast<void>(co_await exchange.finish());
  });
  auto client = client_for(server.port());
  std::string body(40'000'000, 'x');
  auto response = client->send(Method::kPost, "/", {}, body);
  ASSERT_TRUE(response.ok()) << response.error().message();
  EXPECT_EQ(response->body, body);
}

}  // namespace
}  // namespace atl::http
