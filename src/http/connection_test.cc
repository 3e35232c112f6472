#include "http/connection.h"

#include <atomic>
#include <thread>

#include "http/test_server.h"

namespace atl::http {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

// Answers with the method, the path and the body.
Task<void> echo(Exchange& exchange) {
  auto body = co_await exchange.read_body(1024 * 1024);
  std::string text(method_name(exchange.request().method));
  text += " " + exchange.request().path + " ";
  text += body.ok() ? *body : std::string(code_name(body.error().code()));
  Response response = text_response(200, std::move(text));
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

// Answers without looking at the body.
Task<void> ignore_body(Exchange& exchange) {
  Response response = text_response(200, "ignored");
  static_cast<void>(co_await exchange.reply(std::move(response)));
}

std::string head_of(RawPeer& peer) { return peer.read_until("\r\n\r\n"); }

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST(Connection, AnswersManyRequestsOneAfterTheOther) {
  TestServer server(echo);
  RawPeer peer(server.port());
  for (int i = 0; i < 3; ++i) {
    peer.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxy");
    std::string head = head_of(peer);
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
    EXPECT_TRUE(contains(head, "\r\nContent-Length: 10\r\n")) << head;
    EXPECT_FALSE(contains(head, "close"));
    EXPECT_EQ(peer.read_exactly(10), "POST /p xy");
  }
}

TEST(Connection, AnswersPipelinedRequestsInOrder) {
  TestServer server(echo);
  RawPeer peer(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    std::string path = "/" + std::to_string(100 + i);
    all += "POST " + path + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    all += "3\r\nabc\r\n0\r\n\r\n";
    all += "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  peer.send(all);
  for (int i = 0; i < 50; ++i) {
    std::string path = "/" + std::to_string(100 + i);
    head_of(peer);
    EXPECT_EQ(peer.read_exactly(13), "POST " + path + " abc");
    head_of(peer);
    EXPECT_EQ(peer.read_exactly(9), "GET " + path + " ");
  }
}

TEST(Connection, ReadsARequestThatComesByteByByte) {
  TestServer server(echo);
  RawPeer peer(server.port());
  for (char c : std::string("PUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "2\r\nxy\r\n1\r\nz\r\n0\r\n\r\n")) {
    peer.send(std::string_view(&c, 1));
    std::this_thread::sleep_for(milliseconds(1));
  }
  head_of(peer);
  EXPECT_EQ(peer.read_exactly(10), "PUT /b xyz");
}

TEST(Connection, ClosesWhenThePeerAsksForIt) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  std::string all = peer.read_to_end();
  EXPECT_TRUE(contains(all, "\r\nConnection: close\r\n")) << all;
  EXPECT_TRUE(all.ends_with("GET /a ")) << all;
}

TEST(Connection, GivesHttp10OneAnswer) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(peer.read_to_end().ends_with("GET /a "));
}

TEST(Connection, AnswersAPeerThatHasFinishedSending) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send(kGet);
  peer.end_sending();
  EXPECT_TRUE(peer.read_to_end().ends_with("GET /a "));
}

TEST(Connection, HeadHasTheLengthAndNoBody) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(contains(head_of(peer), "\r\nContent-Length: 8\r\n"));
  peer.send(kGet);
  EXPECT_TRUE(head_of(peer).starts_with("HTTP/1.1 200"));
}

TEST(Connection, HeadMayPromiseALengthWithoutABody) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response response;
    response.headers.add("Content-Length", "123456");
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  RawPeer peer(server.port());
  peer.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(contains(head_of(peer), "\r\nContent-Length: 123456\r\n"));
  peer.send(kGet);
  EXPECT_TRUE(contains(head_of(peer), "\r\nContent-Length: 0\r\n"));
}

TEST(Connection, NoContentHasNeitherLengthNorBody) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response response = text_response(204, "not to be sent");
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  EXPECT_FALSE(contains(head_of(peer), "Content-Length"));
  peer.send(kGet);
  EXPECT_TRUE(head_of(peer).starts_with("HTTP/1.1 204 "));
}

TEST(Connection, SaysContinueOnlyWhenTheBodyIsRead) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(head_of(peer), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("xy");
  head_of(peer);
  EXPECT_EQ(peer.read_exactly(9), "PUT /a xy");
}

TEST(Connection, ClosesInsteadOfGuessingAboutABodyItNeverAskedFor) {
  TestServer server(ignore_body);
  RawPeer peer(server.port());
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  std::string all = peer.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 200 OK\r\n")) << all;
  EXPECT_TRUE(contains(all, "\r\nConnection: close\r\n")) << all;
}

TEST(Connection, DrainsASmallBodyThatTheHandlerIgnored) {
  TestServer server(ignore_body);
  RawPeer peer(server.port());
  std::string body(60'000, 'x');
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" + body);
  head_of(peer);
  EXPECT_EQ(peer.read_exactly(7), "ignored");
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n");
  head_of(peer);
  EXPECT_EQ(peer.read_exactly(7), "ignored");
  peer.send(kGet);
  EXPECT_TRUE(head_of(peer).starts_with("HTTP/1.1 200"));
}

TEST(Connection, AnswerSurvivesALargeBodyThatTheHandlerIgnored) {
  TestServer server(ignore_body);
  RawPeer peer(server.port());
  std::string body(2'000'000, 'x');
  EXPECT_TRUE(peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n"));
  std::this_thread::sleep_for(milliseconds(50));
  // A reset would also destroy the answer if it were still on its way.
  EXPECT_TRUE(peer.send(body));
  peer.end_sending();
  std::string all = peer.read_to_end();
  EXPECT_TRUE(contains(all, "\r\nConnection: close\r\n")) << all;
  EXPECT_TRUE(all.ends_with("ignored")) << all;
}

TEST(Connection, BadChunksReachTheHandlerAsAnErrorAndEndTheConnection) {
  std::promise<Code> seen;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    auto body = co_await exchange.read_body(100);
    auto again = co_await exchange.read_body(100);
    EXPECT_FALSE(again.ok());
    seen.set_value(body.ok() ? Code::kSystem : body.error().code());
  });
  RawPeer peer(server.port());
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxy\r\n");
  EXPECT_EQ(seen.get_future().get(), Code::kInvalid);
  EXPECT_TRUE(peer.is_closed_in_time());
}

TEST(Connection, ABadBodyIsAnsweredAndNothingBehindItIsARequest) {
  TestServer server(echo);
  RawPeer peer(server.port());
  peer.send("PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  peer.send(kGet);
  std::string all = peer.read_to_end();
  EXPECT_TRUE(contains(all, "\r\nConnection: close\r\n")) << all;
  EXPECT_TRUE(contains(all, "PUT /a " + std::string(code_name(Code::kInvalid)))) << all;
  EXPECT_FALSE(contains(all, "GET")) << all;
}

TEST(Connection, RefusesBadRequestsAndCloses) {
  std::atomic<int> handled = 0;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    ++handled;
    co_await ignore_body(exchange);
  });
  struct Case {
    std::string_view bytes;
    int status;
  };
  for (const Case& bad :
       {Case{"GET / HTTP/1.1\nHost: h\n\n", 400}, Case{"\x16\x03\x01\x02", 400},
        Case{"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400}, Case{"GET / HTTP/1.1\r\n\r\n", 400},
        Case{"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505},
        Case{"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Case{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
             "0\r\n\r\n",
             400},
        Case{"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n", 417}}) {
    RawPeer peer(server.port());
    peer.send(std::string(bad.bytes) + std::string(kGet));
    std::string all = peer.read_to_end();
    EXPECT_TRUE(all.starts_with("HTTP/1.1 " + std::to_string(bad.status) + " ")) << all;
    EXPECT_TRUE(contains(all, "\r\nConnection: close\r\n")) << all;
    EXPECT_TRUE(contains(all, "\r\n\r\nrefused: ")) << all;
    EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << all;
  }
  EXPECT_EQ(handled, 0);
}

TEST(Connection, RefusesAHeaderOverTheLimitHoweverItIsCut) {
  TestServer server(echo, Limits{.header_bytes = 1000});
  std::string fits = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
  fits += std::string(1000 - fits.size() - 4, 'x') + "\r\n\r\n";
  std::string over = fits;
  over.insert(over.find("xx"), "x");
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  while (many.size() < 5000) many += "X: y\r\n";
  RawPeer good(server.port());
  good.send(fits);
  EXPECT_TRUE(head_of(good).starts_with("HTTP/1.1 200 "));
  for (const std::string& bytes : {over, many}) {
    RawPeer peer(server.port());
    peer.send(bytes.substr(0, 500));
    std::this_thread::sleep_for(milliseconds(10));
    peer.send(bytes.substr(500));
    EXPECT_TRUE(peer.read_to_end().starts_with("HTTP/1.1 431 "));
  }
}

TEST(Connection, HeaderLimitHoldsBehindABodyToo) {
  TestServer server(echo, Limits{.header_bytes = 1000});
  RawPeer peer(server.port());
  peer.send("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(20));
  peer.send("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(3000, 'x') +
            "\r\n\r\n");
  EXPECT_TRUE(head_of(peer).starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(contains(peer.read_to_end(), "HTTP/1.1 431 "));
}

TEST(Connection, HandlerThatDoesNotAnswerGives500) {
  TestServer server([](Exchange&) -> Task<void> { co_return; });
  RawPeer peer(server.port());
  peer.send(kGet);
  std::string all = peer.read_to_end();
  EXPECT_TRUE(all.starts_with("HTTP/1.1 500 ")) << all;
  EXPECT_TRUE(contains(all, "refused: ")) << all;
}

TEST(Connection, HandlerThatThrowsGives500) {
  TestServer server([](Exchange&) -> Task<void> {
    throw std::runtime_error("a library threw");
    co_return;
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  EXPECT_TRUE(peer.read_to_end().starts_with("HTTP/1.1 500 "));
}

TEST(Connection, HandlerCannotAnswerTwiceOrInjectHeaders) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response injected;
    injected.headers.add("X", "a\r\nY: b");
    auto first = co_await exchange.reply(std::move(injected));
    EXPECT_EQ(first.error().code(), Code::kInvalid);
    EXPECT_FALSE(exchange.answered());
    co_await ignore_body(exchange);
    EXPECT_TRUE(exchange.answered());
    Response again = text_response(200, "again");
    auto second = co_await exchange.reply(std::move(again));
    EXPECT_EQ(second.error().code(), Code::kConflict);
  });
  RawPeer peer(server.port());
  peer.send(kGet);
  head_of(peer);
  EXPECT_EQ(peer.read_exactly(7), "ignored");
  peer.send(kGet);
  EXPECT_TRUE(head_of(peer).starts_with("HTTP/1.1 200 ")) << "nothing between";
}

}  // namespace
}  // namespace atl::http
