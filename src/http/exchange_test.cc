#include "http/exchange.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/test_server.h"

namespace atl::http {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

Headers no_headers() { return {}; }

Task<void> reply_text(Exchange& exchange, std::string text) {
  Response response = text_response(200, std::move(text));
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

// Answers with three chunks.
Task<void> three_chunks(Exchange& exchange) {
  Headers headers = no_headers();
  EXPECT_TRUE((co_await exchange.start_stream(200, std::move(headers))).ok());
  EXPECT_TRUE((co_await exchange.write("one")).ok());
  EXPECT_TRUE((co_await exchange.write("")).ok());
  EXPECT_TRUE((co_await exchange.write("twenty-one bytes long")).ok());
  EXPECT_TRUE((co_await exchange.finish()).ok());
}

TEST(Exchange, ReadBodyRefusesWhatIsOverTheLimit) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    auto body = co_await exchange.read_body(4);
    std::string text = body.ok() ? *body : std::string(code_name(body.error().code()));
    co_await reply_text(exchange, std::move(text));
  });
  std::string exhausted(code_name(Code::kExhausted));
  struct Case {
    std::string bytes;
    std::string answer;
  };
  for (const Case& item :
       {Case{"Content-Length: 4\r\n\r\nabcd", "abcd"}, Case{"Content-Length: 0\r\n\r\n", ""},
        Case{"Content-Length: 5\r\n\r\nabcde", exhausted},
        Case{"Content-Length: 99999999999\r\n\r\n", exhausted},
        Case{"Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", "abcd"},
        Case{"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", exhausted}}) {
    RawPeer peer(server.port());
    peer.send("POST /a HTTP/1.1\r\nHost: h\r\n" + item.bytes);
    peer.end_sending();
    std::string all = peer.read_to_end();
    EXPECT_TRUE(all.ends_with("\r\n\r\n" + item.answer)) << item.bytes << "\n" << all;
  }
}

TEST(Exchange, ReadBodySomeGivesPartsAsTheyCome) {
  std::promise<void> first_part;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    std::array<char, 4> part;
    std::string parts;
    for (;;) {
      std::span<char> into(part);
      auto count = co_await exchange.read_body_some(into);
      if (!count.ok() || *count == 0) break;
      if (parts.empty()) first_part.set_value();
      parts += std::string(part.data(), *count) + "|";
    }
    co_await reply_text(exchange, std::move(parts));
  });
  RawPeer peer(server.port());
  peer.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  first_part.get_future().get();
  peer.send("6\r\ndefghi\r\n0\r\n\r\n");
  peer.end_sending();
  EXPECT_TRUE(peer.read_to_end().ends_with("\r\n\r\nabc|defg|hi|"));
}

TEST(Exchange, ReadBodyFailsWhenThePeerGoesAway) {
  std::promise<Code> seen;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    auto body = co_await exchange.read_body(100);
    auto answer = co_await exchange.reply(Response());
    EXPECT_FALSE(answer.ok());
    seen.set_value(body.error().code());
  });
  RawPeer peer(server.port());
  peer.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nabc");
  peer.close();
  EXPECT_EQ(seen.get_future().get(), Code::kCancelled);
}

TEST(Exchange, StreamIsChunkedAndKeepsTheConnection) {
  TestServer server(three_chunks);
  RawPeer peer(server.port());
  for (int i = 0; i < 2; ++i) {
    peer.send(kGet);
    std::string head = peer.read_until("\r\n\r\n");
    EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos) << head;
    EXPECT_EQ(peer.read_until("0\r\n\r\n"), "3\r\none\r\n15\r\ntwenty-one bytes long\r\n0\r\n\r\n");
  }
}

TEST(Exchange, StreamToHeadHasNoBody) {
  TestServer server(three_chunks);
  RawPeer peer(server.port());
  peer.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  peer.read_until("\r\n\r\n");
  peer.send(kGet);
  EXPECT_TRUE(peer.read_until("0\r\n\r\n").starts_with("HTTP/1.1 200 ")) << "nothing between";
}

TEST(Exchange, StreamToHttp10EndsWithTheConnection) {
  TestServer server(three_chunks);
  RawPeer peer(server.port());
  peer.send("GET /a HTTP/1.0\r\n\r\n");
  std::string all = peer.read_to_end();
  EXPECT_EQ(all.find("chunked"), std::string::npos) << all;
  EXPECT_TRUE(all.ends_with("\r\n\r\nonetwenty-one bytes long")) << all;
}

TEST(Exchange, StreamMayBeginAndEndWithBytesOfItsBody) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Headers headers = no_headers();
    EXPECT_TRUE((co_await exchange.start_stream(200, std::move(headers), "", "first")).ok());
    EXPECT_TRUE((co_await exchange.finish("last")).ok());
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  EXPECT_EQ(peer.read_until("0\r\n\r\n"), "5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n");
  peer.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  peer.read_until("\r\n\r\n");
  peer.send(kGet);
  EXPECT_TRUE(peer.read_until("0\r\n\r\n").starts_with("HTTP/1.1 200 ")) << "nothing between";
  RawPeer older(server.port());
  older.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(older.read_to_end().ends_with("\r\n\r\nfirstlast"));
}

TEST(Exchange, StreamMayPromiseALengthAndMustKeepIt) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Headers headers;
    headers.add("Content-Length", "6");
    EXPECT_TRUE((co_await exchange.start_stream(200, std::move(headers))).ok());
    EXPECT_TRUE((co_await exchange.write("abc")).ok());
    auto early = co_await exchange.finish();
    EXPECT_EQ(early.error().code(), Code::kInvalid);
    auto over = co_await exchange.write("defg");
    EXPECT_EQ(over.error().code(), Code::kInvalid);
    EXPECT_TRUE((co_await exchange.write("def")).ok());
    EXPECT_TRUE((co_await exchange.finish()).ok());
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  std::string head = peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("\r\nContent-Length: 6\r\n"), std::string::npos) << head;
  EXPECT_EQ(peer.read_exactly(6), "abcdef");
}

TEST(Exchange, UnfinishedStreamEndsWithoutItsLastChunk) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Headers headers = no_headers();
    static_cast<void>(co_await exchange.start_stream(200, std::move(headers)));
    static_cast<void>(co_await exchange.write("part"));
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  EXPECT_TRUE(peer.read_to_end().ends_with("4\r\npart\r\n"));
}

TEST(Exchange, SlowReaderSlowsTheWriterAndLosesNothing) {
  constexpr size_t kChunks = 400;
  std::atomic<size_t> written = 0;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    Headers headers = no_headers();
    static_cast<void>(co_await exchange.start_stream(200, std::move(headers)));
    std::string chunk(65536, 'x');
    while (written < kChunks) {
      auto sent = co_await exchange.write(chunk);
      if (!sent.ok()) co_return;
      ++written;
    }
    static_cast<void>(co_await exchange.finish());
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_LT(written, kChunks);
  std::string all = peer.read_until("0\r\n\r\n");
  EXPECT_EQ(static_cast<size_t>(std::count(all.begin(), all.end(), 'x')), kChunks * 65536);
}

TEST(Exchange, WriteFailsAfterThePeerHasGone) {
  std::promise<Code> seen;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    Headers headers = no_headers();
    static_cast<void>(co_await exchange.start_stream(200, std::move(headers)));
    std::string chunk(65536, 'x');
    Result<void> written;
    while (written.ok()) written = co_await exchange.write(chunk);
    seen.set_value(written.error().code());
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  peer.read_until("\r\n\r\n");
  peer.close();
  EXPECT_EQ(seen.get_future().get(), Code::kCancelled);
}

TEST(ServerSentEvent, DataCannotInjectAnEvent) {
  EXPECT_EQ(format_event({.id = "7", .event = "output", .data = "a"}),
            "id: 7\nevent: output\ndata: a\n\n");
  EXPECT_EQ(format_event({.id = "", .event = "", .data = ""}), "data: \n\n");
  EXPECT_EQ(format_event({.id = "", .event = "", .data = "a\n\nevent: exit\rb\r\nc\n"}),
            "data: a\ndata: \ndata: event: exit\ndata: b\ndata: c\ndata: \n\n");
}

TEST(ServerSentEvent, ArrivesWhenItIsWritten) {
  std::promise<void> read_first;
  auto may_go_on = read_first.get_future();
  TestServer server([&](Exchange& exchange) -> Task<void> {
    EXPECT_TRUE((co_await start_events(exchange)).ok());
    std::string event = format_event({.id = "1", .event = "e", .data = "x"});
    EXPECT_TRUE((co_await exchange.write(event)).ok());
    may_go_on.wait();
    EXPECT_TRUE((co_await exchange.finish()).ok());
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  std::string head = peer.read_until("\r\n\r\n");
  EXPECT_NE(head.find("\r\nContent-Type: text/event-stream; charset=utf-8\r\n"), std::string::npos)
      << head;
  EXPECT_NE(head.find("\r\nCache-Control: no-store\r\n"), std::string::npos) << head;
  EXPECT_EQ(peer.read_until("\n\n"), "18\r\nid: 1\nevent: e\ndata: x\n\n");
  read_first.set_value();
  EXPECT_EQ(peer.read_until("0\r\n\r\n"), "\r\n0\r\n\r\n");
}

// Waits for its peer to go, or for a long time.
struct Sleeper {
  std::promise<bool> gone;
  Task<void> operator()(Exchange& exchange) {
    auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::steady_timer timer(executor, test_timeout());
    bool left = false;
    {
      auto watch = exchange.watch_peer();
      auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
      co_await timer.async_wait(token);
      left = watch.gone();
    }
    gone.set_value(left);
    co_await reply_text(exchange, "awake");
  }
};

TEST(Exchange, WatchedPeerThatGoesAwayEndsTheWait) {
  for (bool half : {true, false}) {
    Sleeper sleeper;
    TestServer server([&](Exchange& exchange) { return sleeper(exchange); });
    RawPeer peer(server.port());
    peer.send(kGet);
    EXPECT_TRUE(server.has_connections_in_time(1));
    half ? peer.end_sending() : peer.close();
    EXPECT_TRUE(sleeper.gone.get_future().get()) << half;
    EXPECT_TRUE(server.has_connections_in_time(0));
  }
}

TEST(Exchange, WatchedPeerMaySendItsNextRequest) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::steady_timer timer(executor, milliseconds(50));
    {
      auto watch = exchange.watch_peer();
      auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
      co_await timer.async_wait(token);
    }
    std::string path = exchange.request().path;
    co_await reply_text(exchange, std::move(path));
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  peer.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(peer.read_until("\r\n\r\n/a").ends_with("/a"));
  EXPECT_TRUE(peer.read_until("\r\n\r\n/b").ends_with("/b"));
}

TEST(Exchange, SilentEventsCarryComments) {
  Limits limits;
  limits.comment_time = milliseconds(40);
  std::promise<void> go;
  std::shared_future<void> may_go = go.get_future().share();
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        EXPECT_TRUE((co_await start_events(exchange)).ok());
        auto executor = co_await boost::asio::this_coro::executor;
        while (may_go.wait_for(milliseconds(0)) != std::future_status::ready) {
          boost::asio::steady_timer timer(executor, milliseconds(10));
          auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
          co_await timer.async_wait(token);
        }
        EXPECT_TRUE((co_await exchange.finish()).ok());
      },
      limits);
  RawPeer peer(server.port());
  peer.send(kGet);
  EXPECT_NE(peer.read_until("3\r\n:\n\n\r\n"), "");
  EXPECT_EQ(peer.read_until("3\r\n:\n\n\r\n"), "3\r\n:\n\n\r\n");
  go.set_value();
  EXPECT_TRUE(peer.read_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
}

}  // namespace
}  // namespace atl::http
