#include "http/web_socket.h"

#include <atomic>

#include "http/test_server.h"

namespace atl::http {
namespace {

// The example of RFC 6455, 1.3.
constexpr std::string_view kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
constexpr std::string_view kAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

enum Opcode : unsigned char {
  kText = 0x81,
  kBinary = 0x82,
  kClose = 0x88,
  kPing = 0x89,
  kPong = 0x8a
};

// A frame as a client sends it: masked.
std::string frame(Opcode opcode, std::string_view data) {
  std::string out(1, static_cast<char>(opcode));
  if (data.size() < 126) {
    out.push_back(static_cast<char>(0x80 | data.size()));
  } else {
    EXPECT_LT(data.size(), 65536u);
    out.push_back(static_cast<char>(0x80 | 126));
    out.push_back(static_cast<char>(data.size() >> 8));
    out.push_back(static_cast<char>(data.size()));
  }
  std::string_view mask = "mask";
  out.append(mask);
  for (size_t i = 0; i < data.size(); ++i) out.push_back(static_cast<char>(data[i] ^ mask[i % 4]));
  return out;
}

std::string short_frame(Opcode opcode, std::string_view data) {
  return std::string(1, static_cast<char>(opcode)) + static_cast<char>(data.size()) +
         std::string(data);
}

// Sends every message back until the peer closes, and remembers why it ended.
struct Echo {
  std::promise<Code> end;
  Task<void> operator()(Exchange& exchange) {
    EXPECT_TRUE(exchange.wants_web_socket());
    auto web_socket = co_await exchange.accept_web_socket();
    if (!web_socket.ok()) {
      Response response = text_response(400, web_socket.error().message());
      static_cast<void>(co_await exchange.reply(std::move(response)));
      co_return;
    }
    Result<WebSocket::Message> message = co_await (*web_socket)->read();
    while (message.ok()) {
      auto kind = message->kind;
      static_cast<void>(co_await (*web_socket)->write(kind, message->data));
      message = co_await (*web_socket)->read();
    }
    end.set_value(message.error().code());
  }
  Handler handler() {
    return [this](Exchange& exchange) { return (*this)(exchange); };
  }
};

RawPeer upgraded(TestServer& server) {
  RawPeer peer(server.port());
  peer.send(kUpgrade);
  std::string head = peer.read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 101 ")) << head;
  EXPECT_NE(head.find(kAccept), std::string::npos) << head;
  return peer;
}

TEST(WebSocket, EchoesTextAndBinary) {
  Echo echo;
  TestServer server(echo.handler());
  RawPeer peer = upgraded(server);
  peer.send(frame(kText, "hello"));
  EXPECT_EQ(peer.read_exactly(7), short_frame(kText, "hello"));
  peer.send(frame(kBinary, "\xff\xfe"));
  EXPECT_EQ(peer.read_exactly(4), short_frame(kBinary, "\xff\xfe"));
  peer.send(frame(kPing, "p"));
  EXPECT_EQ(peer.read_exactly(3), short_frame(kPong, "p"));
  peer.send(frame(kClose, "\x03\xe8"));
  EXPECT_EQ(peer.read_exactly(4), short_frame(kClose, "\x03\xe8"));
  EXPECT_TRUE(peer.is_closed_in_time());
  peer.close();
  EXPECT_EQ(echo.end.get_future().get(), Code::kCancelled);
}

TEST(WebSocket, PeerThatClosesOnlyHalfDoesNotHoldTheHandler) {
  Echo echo;
  TestServer server(echo.handler());
  RawPeer peer = upgraded(server);
  peer.send(frame(kClose, "\x03\xe8"));
  auto end = echo.end.get_future();
  ASSERT_EQ(end.wait_for(milliseconds(30'000)), std::future_status::ready);
  EXPECT_EQ(end.get(), Code::kCancelled);
}

TEST(WebSocket, RefusesTooLongAMessage) {
  Echo echo;
  TestServer server(echo.handler(), Limits{.web_socket_message_bytes = 1000});
  RawPeer peer = upgraded(server);
  peer.send(frame(kText, std::string(1001, 'x')));
  EXPECT_EQ(peer.read_exactly(4), short_frame(kClose, "\x03\xf1"));
  EXPECT_EQ(echo.end.get_future().get(), Code::kExhausted);
}

TEST(WebSocket, RefusesFramesThatBreakTheProtocol) {
  for (const std::string& bytes : {short_frame(kText, "unmasked"), frame(kText, "\xff\xff"),
                                   frame(static_cast<Opcode>(0x83), "reserved")}) {
    Echo echo;
    TestServer server(echo.handler());
    RawPeer peer = upgraded(server);
    peer.send(bytes);
    EXPECT_EQ(peer.read_exactly(1), std::string(1, static_cast<char>(kClose)));
    EXPECT_EQ(echo.end.get_future().get(), Code::kCancelled);
  }
}

TEST(WebSocket, ImproperUpgradeIsAnsweredByTheHandler) {
  Echo echo;
  TestServer server(echo.handler());
  std::string old_version(kUpgrade);
  old_version.replace(old_version.find("13"), 2, "12");
  std::string short_key(kUpgrade);
  short_key.erase(short_key.find("dGhl"), 4);
  std::string early_frame = std::string(kUpgrade) + frame(kText, "early");
  for (const std::string& bytes : {old_version, short_key, early_frame}) {
    RawPeer peer(server.port());
    peer.send(bytes);
    EXPECT_TRUE(peer.read_until("\r\n\r\n").starts_with("HTTP/1.1 400 ")) << bytes;
  }
}

TEST(WebSocket, OrdinaryRequestDoesNotWantOne) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    EXPECT_FALSE(exchange.wants_web_socket());
    EXPECT_FALSE((co_await exchange.accept_web_socket()).ok());
    Response response = text_response(426, "upgrade");
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  RawPeer peer(server.port());
  peer.send("GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_TRUE(peer.read_until("\r\n\r\n").starts_with("HTTP/1.1 426 "));
}

TEST(WebSocket, CloseSendsCodeAndReasonAndDoesNotWaitForEver) {
  std::promise<void> closed;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        auto web_socket = co_await exchange.accept_web_socket();
        auto bad_text = co_await (*web_socket)->write(WebSocket::Kind::kText, "\xff");
        EXPECT_EQ(bad_text.error().code(), Code::kInvalid);
        auto done = co_await (*web_socket)->close(4001, "gone");
        EXPECT_EQ(done.error().code(), Code::kTimeout);
        closed.set_value();
      },
      Limits{.write_time = milliseconds(100)});
  RawPeer peer = upgraded(server);
  EXPECT_EQ(peer.read_exactly(8), short_frame(kClose, "\x0f\xa1gone"));
  closed.get_future().get();
}

TEST(WebSocket, SilentSocketIsKeptAliveByPings) {
  Echo echo;
  TestServer server(echo.handler(), Limits{.idle_time = milliseconds(1500)});
  RawPeer peer = upgraded(server);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(peer.read_exactly(2), short_frame(kPing, ""));
    peer.send(frame(kPong, ""));
  }
  peer.send(frame(kText, "alive"));
  EXPECT_NE(peer.read_until("alive").find("alive"), std::string::npos);
}

TEST(WebSocket, PeerThatDoesNotReadTimesOut) {
  std::promise<Code> seen;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        auto web_socket = co_await exchange.accept_web_socket();
        std::string data(1024 * 1024, 'x');
        Result<void> written;
        while (written.ok()) {
          written = co_await (*web_socket)->write(WebSocket::Kind::kBinary, data);
        }
        seen.set_value(written.error().code());
      },
      Limits{.write_time = milliseconds(150)});
  RawPeer peer = upgraded(server);
  EXPECT_EQ(seen.get_future().get(), Code::kTimeout);
}

TEST(WebSocket, StopEndsAnOpenSocket) {
  Echo echo;
  TestServer server(echo.handler(), Limits{.drain = milliseconds(50)});
  RawPeer peer = upgraded(server);
  server.stop();
  EXPECT_EQ(echo.end.get_future().get(), Code::kCancelled);
  EXPECT_TRUE(server.ends_in_time());
}

TEST(WebSocket, PeerThatVanishesEndsTheRead) {
  Echo echo;
  TestServer server(echo.handler());
  { RawPeer peer = upgraded(server); }
  EXPECT_EQ(echo.end.get_future().get(), Code::kCancelled);
}

}  // namespace
}  // namespace atl::http
