#include "cli/program_output.h"

#include <gtest/gtest.h>

#include "http/test_server.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

json::object ended(const char* verdict) {
  return {{"verdict", verdict}, {"exit_code", nullptr},
          {"signal", 9},        {"usage", {{"wall_ms", 1003.2}}},
          {"stdout_cut", 0},    {"stderr_cut", 0}};
}

TEST(ProgramOutput, SaysWhichLimitEndedItAndWhatToDo) {
  EXPECT_EQ(explain_end(ended("wall_time")), "atoll: wall_time after 1.0 s: raise --timeout\n");
  EXPECT_EQ(explain_end(ended("oom")), "atoll: oom after 1.0 s: raise --memory\n");
  EXPECT_EQ(explain_end(ended("signal")), "atoll: signal 9 after 1.0 s\n");
}

TEST(ProgramOutput, AProgramThatEndedByItselfSpeaksForItself) {
  EXPECT_EQ(explain_end(ended("ok")), "");
  EXPECT_EQ(explain_end(ended("nonzero")), "");
}

TEST(ProgramOutput, SaysWhatWasCut) {
  json::object exec = ended("ok");
  exec["stdout_cut"] = 12;
  EXPECT_EQ(explain_end(exec), "atoll: 12 bytes of stdout were cut: raise --output-limit\n");
}

TEST(ProgramOutput, TheReasonOfThePlatformIsEscaped) {
  json::object exec = ended("platform_error");
  exec["failure"] = "\x1b]0;x";
  EXPECT_EQ(explain_end(exec).find('\x1b'), std::string::npos);
}

constexpr const char* kExit = R"({"id":"e1","state":"ended","verdict":"nonzero","exit_code":3})";

// A server that loses the connection in the middle of the output, once.
struct Losing {
  std::vector<std::string> asked_from;

  http::Task<void> operator()(http::Exchange& exchange) {
    bool is_first = asked_from.empty();
    asked_from.emplace_back(exchange.request().headers.find("last-event-id").value_or("none"));
    static_cast<void>(co_await http::start_events(exchange));
    http::ServerSentEvent event{"3-0", "stdout", R"({"text":"one"})"};
    if (!is_first) event = {"5-0", "stdout", R"({"base64":"/wA="})"};
    std::string text = http::format_event(event);
    static_cast<void>(co_await exchange.write(text));
    // Without finish() the connection is cut.
    if (is_first) co_return;
    http::ServerSentEvent exit{"5-0", "exit", kExit};
    text = http::format_event(exit);
    static_cast<void>(co_await exchange.write(text));
    static_cast<void>(co_await exchange.finish());
  }
};

TEST(ProgramOutput, GoesOnWhereItWasCut) {
  auto losing = std::make_shared<Losing>();
  http::TestServer server(
      [losing](http::Exchange& exchange) -> http::Task<void> { return (*losing)(exchange); });
  Api api(Server{"127.0.0.1", server.port(), "k"});
  testing::internal::CaptureStdout();
  auto exec = follow_exec(api, {"s1", "e1"}, OutputMode::kSafe);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string("one\xff\0", 5));
  ASSERT_TRUE(exec.ok()) << exec.error().message();
  EXPECT_EQ(exit_code_of_exec(*exec), 3);
  EXPECT_EQ(losing->asked_from, (std::vector<std::string>{"none", "3-0"}));
}

TEST(ProgramOutput, AnErrorOfTheServerIsNotOutput) {
  http::TestServer server([](http::Exchange& exchange) -> http::Task<void> {
    http::Response response;
    response.status = 404;
    response.body = R"({"error":{"code":"exec_not_found","message":"no","remedy":"look"}})";
    static_cast<void>(co_await exchange.reply(std::move(response)));
  });
  Api api(Server{"127.0.0.1", server.port(), "k"});
  testing::internal::CaptureStdout();
  auto exec = follow_exec(api, {"s1", "e9"}, OutputMode::kSafe);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(exec.error().reason(), "exec_not_found");
  EXPECT_EQ(exec.error().message(), "exec_not_found: no\n  remedy: look");
}

}  // namespace
}  // namespace atl::cli
