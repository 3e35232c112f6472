#include "api/v1/execs.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "api/base64.h"
#include "api/test_server.h"
#include "http/test_server.h"

namespace atl::api::v1 {
namespace {

namespace json = boost::json;
using http::Method;
using http::RawPeer;

json::object body_of(const http::Response& response) {
  json::error_code error;
  json::value value = json::parse(response.body, error);
  EXPECT_FALSE(error) << response.body;
  return value.is_object() ? value.as_object() : json::object();
}

std::string code_of(const http::Response& response) {
  json::object body = body_of(response);
  return std::string(body["error"].as_object()["code"].as_string());
}

std::string execs_path(TestServer& server) {
  auto created = server.send(Method::kPost, "/v1/sandboxes", R"({"template":"python"})");
  return "/v1/sandboxes/" + std::string(body_of(created)["id"].as_string()) + "/execs";
}

// A client of its own, for a request that takes its time.
RawPeer ask(TestServer& server, std::string_view line, const std::string& headers = "",
            const std::string& body = "") {
  RawPeer peer(server.port);
  peer.send(std::string(line) + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
            server.key + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
            "\r\n" + body);
  return peer;
}

// Whether these bytes are under way to the first exec, not yet taken.
bool gets_pending(TestServer& server, const std::string& path, std::string_view bytes) {
  auto id =
      SandboxId::parse(std::string_view(path).substr(sizeof "/v1/sandboxes", SandboxId::kLength));
  return eventually([&] {
    bool found = false;
    server.run_inside([&] {
      auto sandbox = server.bed.sandboxes().find(store::kLocalTenant, *id);
      auto exec = sandbox->execs().find_live(*ExecId::parse("e1"));
      found = exec && exec->input().pending == bytes;
    });
    return found;
  });
}

// Data of the stream's events, put together; base 64 is undone.
std::string joined(const std::string& events, const std::string& stream) {
  std::string all;
  std::string mark = "event: " + stream + "\ndata: ";
  for (size_t at = events.find(mark); at != events.npos; at = events.find(mark, at)) {
    at += mark.size();
    json::object data = json::parse(events.substr(at, events.find('\n', at) - at)).as_object();
    if (data.contains("text")) all += std::string_view(data["text"].as_string());
    if (data.contains("base64"))
      all += from_base64(std::string_view(data["base64"].as_string())).value_or("?");
  }
  return all;
}

TEST(Execs, InputIsGivenAtTheStart) {
  TestServer server;
  std::string path = execs_path(server);
  auto text = server.send(Method::kPost, path, R"({"cmd":["cat"],"stdin":"héllo","wait":true})");
  EXPECT_EQ(body_of(text)["stdout"], "héllo");
  auto bytes =
      server.send(Method::kPost, path, R"({"cmd":["cat"],"stdin_base64":"/wA=","wait":true})");
  EXPECT_EQ(body_of(bytes)["stdout_base64"], "/wA=");
}

TEST(Execs, InputIsTakenOnceByOffset) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["cat"],"stdin":"ab","stdin_open":true})");
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  auto write = [&](const std::string& query, std::string body) {
    return server.send_as(Method::kPost, path + "/e1/stdin" + query, headers, std::move(body));
  };
  EXPECT_EQ(body_of(write("", "cd"))["offset"], 4);
  EXPECT_EQ(body_of(write("?offset=2", "cdef"))["offset"], 6);
  EXPECT_EQ(body_of(write("?offset=2", "cdef"))["offset"], 6);
  auto gap = write("?offset=7", "x");
  EXPECT_EQ(gap.status, 409);
  EXPECT_EQ(code_of(gap), "stdin_gap");
  EXPECT_EQ(write("?offset=x", "x").status, 400);
  EXPECT_EQ(write("?eof=1", "x").status, 400);
  std::string large(300'000, 'x');
  json::object last = body_of(write("?offset=6&eof=true", large));
  EXPECT_EQ(last["offset"], 300'006);
  EXPECT_EQ(last["closed"], true);
  auto ended = body_of(server.send(Method::kGet, path + "/e1?wait_ms=10000"));
  EXPECT_EQ(ended["verdict"], "ok");
  EXPECT_EQ(std::string(ended["stdout"].as_string()), "abcdef" + large);
  auto late = write("?offset=6", "y");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(code_of(late), "exec_not_running");
}

TEST(Execs, InputThatWasNotAskedForIsClosed) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["hang"]})");
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  auto refused = server.send_as(Method::kPost, path + "/e1/stdin", headers, "x");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code_of(refused), "stdin_closed");
}

TEST(Execs, OnlyATerminalIsResized) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["hang"]})");
  auto refused = server.send(Method::kPost, path + "/e1/resize", R"({"cols":80,"rows":24})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code_of(refused), "no_terminal");
  server.send(Method::kPost, path, R"({"cmd":["cat"],"pty":{"cols":80,"rows":24}})");
  EXPECT_EQ(server.send(Method::kPost, path + "/e2/resize", R"({"cols":81,"rows":0})").status, 400);
  EXPECT_EQ(server.send(Method::kPost, path + "/e2/resize", R"({"cols":81,"rows":25})").status,
            204);
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  server.send_as(Method::kPost, path + "/e2/stdin?eof=true", headers, "");
  EXPECT_EQ(body_of(server.send(Method::kGet, path + "/e2?wait_ms=10000"))["stdout"], "81x25\n");
}

TEST(Execs, AnySignalIsSentByNameOrNumber) {
  TestServer server;
  std::string path = execs_path(server);
  int number = 0;
  for (const char* signal : {R"("TERM")", R"("SIGUSR1")", "15", R"("RTMIN+1")", "64"}) {
    std::string exec = path + "/e" + std::to_string(++number);
    server.send(Method::kPost, path, R"({"cmd":["hang"]})");
    std::string body = std::string(R"({"signal":)") + signal + "}";
    EXPECT_EQ(server.send(Method::kPost, exec + "/signal", body).status, 204) << signal;
    auto ended = body_of(server.send(Method::kGet, exec + "?wait_ms=10000"));
    EXPECT_EQ(ended["verdict"], "killed") << signal;
  }
  for (const char* signal : {"0", "65", R"("NOPE")", "1.5", "null"}) {
    std::string body = std::string(R"({"signal":)") + signal + "}";
    EXPECT_EQ(server.send(Method::kPost, path + "/e1/signal", body).status, 400) << signal;
  }
}

TEST(Execs, ShowWaitsOnlySoLong) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["hang"]})");
  EXPECT_EQ(body_of(server.send(Method::kGet, path + "/e1?wait_ms=20"))["state"], "running");
  EXPECT_EQ(server.send(Method::kGet, path + "/e1?wait_ms=soon").status, 400);
  EXPECT_EQ(server.send(Method::kGet, path + "/e1?wait_ms=86400001").status, 400);
}

TEST(Execs, OutputIsFollowedAsBytesToTheEnd) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["cat"],"stdin":"0123","stdin_open":true})");
  RawPeer first = ask(server, "GET " + path + "/e1/output?follow=true");
  RawPeer second = ask(server, "GET " + path + "/e1/output?follow=true&offset=2&limit=4");
  EXPECT_NE(first.read_until("0123\r\n").find("Atoll-Ended: false"), std::string::npos);
  EXPECT_NE(second.read_until("23\r\n").find("Atoll-Offset: 2"), std::string::npos);
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  server.send_as(Method::kPost, path + "/e1/stdin?eof=true", headers, "456789");
  EXPECT_EQ(first.read_until("\r\n0\r\n\r\n"), "6\r\n456789\r\n0\r\n\r\n");
  EXPECT_EQ(second.read_until("\r\n0\r\n\r\n"), "2\r\n45\r\n0\r\n\r\n");
  auto part = server.send(Method::kGet, path + "/e1/output?offset=1&limit=3");
  EXPECT_EQ(part.body, "123");
  EXPECT_EQ(part.headers.find("Atoll-Ended"), "true");
}

TEST(Execs, MalformedParametersAreRefusedByName) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["echo","x"],"wait":true})");
  struct {
    std::string target, field;
  } const kBad[] = {
      {"/e1/output?stream=%ff", "stream"},
      {"/e1/output?stream=stdout&stream=stdout", "stream"},
      {"/e1/output?stream=", "stream"},
      {"?cursor=%zz", "cursor"},
      {"?cursor=e1&cursor=e1", "cursor"},
      {"?cursor=", "cursor"},
      {"?limit=0", "limit"},
  };
  for (const auto& [target, field] : kBad) {
    auto refused = server.send(Method::kGet, path + target);
    EXPECT_EQ(refused.status, 400) << target;
    json::object body = body_of(refused);
    EXPECT_EQ(body["error"].as_object()["field"].as_string(), field) << target;
  }
  for (const char* from : {"%ff", "0-0&from=0-0", ""}) {
    RawPeer peer =
        ask(server, "GET " + path + "/e1/output?from=" + from, "Accept: text/event-stream\r\n");
    EXPECT_NE(peer.read_until("}}\n").find(R"("field":"from")"), std::string::npos) << from;
  }
}

TEST(Execs, EventsResumeWhereTheyStopped) {
  TestServer server;
  std::string path = execs_path(server);
  // A character that comes in two halves.
  server.send(Method::kPost, path, R"({"cmd":["cat"],"stdin_base64":"YcM=","stdin_open":true})");
  RawPeer peer = ask(server, "GET " + path + "/e1/output", "Accept: text/event-stream\r\n");
  std::string events = peer.read_until("\n\n\r\n");
  EXPECT_NE(events.find("id: 1-0\nevent: stdout\ndata: {\"text\":\"a\"}\n\n"), std::string::npos)
      << events;
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  server.send_as(Method::kPost, path + "/e1/stdin", headers, "\xa9\nevent: exit\r\rdata: 1\n\n");
  events = peer.read_until("\n\n\r\n");
  EXPECT_EQ(joined(events, "stdout"), "\xc3\xa9\nevent: exit\r\rdata: 1\n\n");
  EXPECT_EQ(events.find("event: exit\n"), std::string::npos) << events;
  server.send_as(Method::kPost, path + "/e1/stdin?eof=true", headers, "\xff");
  events = peer.read_until("0\r\n\r\n");
  EXPECT_EQ(joined(events, "stdout"), "\xff");
  EXPECT_NE(events.find("event: exit\ndata: {\"id\":\"e1\",\"state\":\"ended\""),
            std::string::npos);

  RawPeer again = ask(server, "GET " + path + "/e1/output?from=0-0",
                      "Accept: text/event-stream\r\nLast-Event-ID: 1-0\r\n");
  EXPECT_EQ(joined(again.read_until("0\r\n\r\n"), "stdout"),
            "\xc3\xa9\nevent: exit\r\rdata: 1\n\n\xff");
  RawPeer beyond =
      ask(server, "GET " + path + "/e1/output?from=0-1", "Accept: text/event-stream\r\n");
  EXPECT_NE(beyond.read_until("}}\n").find("offset_beyond_end"), std::string::npos);
}

TEST(Execs, ANewExecCanAnswerWithItsEvents) {
  TestServer server;
  std::string path = execs_path(server);
  RawPeer peer =
      ask(server, "POST " + path, "Accept: text/event-stream\r\nContent-Type: application/json\r\n",
          R"({"cmd":["warn","oops"]})");
  std::string events = peer.read_until("0\r\n\r\n");
  EXPECT_NE(events.find("id: 0-0\nevent: start\ndata: {\"id\":\"e1\""), std::string::npos);
  EXPECT_EQ(joined(events, "stderr"), "oops\n");
  EXPECT_NE(events.find("id: 0-5\nevent: exit\n"), std::string::npos);
}

TEST(Execs, AClientThatGoesAwayEndsItsHandlerAndNotTheExec) {
  TestServer server;
  std::string path = execs_path(server);
  {
    RawPeer starter = ask(server, "POST " + path, "Content-Type: application/json\r\n",
                          R"({"cmd":["hang"],"wait":true})");
    auto started = [&] { return server.send(Method::kGet, path + "/e1").status == 200; };
    while (!started()) continue;
    RawPeer follower = ask(server, "GET " + path + "/e1/output?follow=true");
    RawPeer waiter = ask(server, "GET " + path + "/e1?wait_ms=86400000");
    EXPECT_NE(follower.read_until("\r\n\r\n"), "");
    EXPECT_TRUE(server.has_connections_in_time(4));
  }
  EXPECT_TRUE(server.has_connections_in_time(1));
  EXPECT_EQ(body_of(server.send(Method::kGet, path + "/e1"))["state"], "running");
}

TEST(Execs, AVanishedClientsBytesAreTakenBeforeTheNext) {
  TestServer server;
  std::string path = execs_path(server);
  server.send(Method::kPost, path, R"({"cmd":["late"],"stdin_open":true})");
  {
    RawPeer gone = ask(server, "POST " + path + "/e1/stdin", "", "lost?");
    EXPECT_TRUE(gets_pending(server, path, "lost?"));
  }
  EXPECT_TRUE(server.has_connections_in_time(1));
  EXPECT_EQ(server.send(Method::kPost, path + "/e1/signal", R"({"signal":"CONT"})").status, 204);
  http::Headers headers{{"Authorization", "Bearer " + server.key}};
  auto next = server.send_as(Method::kPost, path + "/e1/stdin?eof=true", headers, " no");
  EXPECT_EQ(body_of(next)["offset"], 8);
  auto ended = body_of(server.send(Method::kGet, path + "/e1?wait_ms=10000"));
  EXPECT_EQ(ended["stdout"], "lost? no");
}

}  // namespace
}  // namespace atl::api::v1
