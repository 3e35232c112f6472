#include "cli/api.h"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "cli/sandbox_commands.h"

namespace atl::cli {
namespace {

TEST(Api, ShowsTheServersMessageFieldAndRemedy) {
  Error error =
      explain_failure(400, R"({"error":{"code":"template_not_found","message":"there is none",
      "field":"template","cause":"user","remedy":"atoll template ls","request_id":"r1"}})");
  EXPECT_EQ(error.code(), Code::kInvalid);
  EXPECT_EQ(error.reason(), "template_not_found");
  EXPECT_EQ(error.message(),
            "template_not_found: template: there is none\n  remedy: atoll template ls");
}

TEST(Api, NamesTheRequestWhenTheServerIsAtFault) {
  Error error = explain_failure(503, R"({"error":{"message":"busy","request_id":"r1"}})");
  EXPECT_EQ(error.code(), Code::kUnavailable);
  EXPECT_EQ(error.message(), "busy\n  request: r1");
}

TEST(Api, SaysTheStatusWhenTheAnswerIsNotOurs) {
  for (const char* body : {"", "<html>", "[]", "{\"error\":1}"})
    EXPECT_EQ(explain_failure(502, body).message(), "the server answers 502") << body;
}

TEST(Api, TakesOutputAsTextOrBase64) {
  boost::json::object exec = {{"stdout", "text"}, {"stderr_base64", "AP8="}};
  EXPECT_EQ(output_bytes(exec, "stdout").value(), "text");
  EXPECT_EQ(output_bytes(exec, "stderr").value(), std::string("\0\xff", 2));
  EXPECT_EQ(output_bytes({}, "stdout").value(), "");
}

TEST(Api, RefusesMalformedBase64) {
  for (const char* text : {"A", "AP8", "A*8=", "===="})
    EXPECT_FALSE(output_bytes({{"stdout_base64", text}}, "stdout").ok()) << text;
}

TEST(Api, AnIdThatIsNotOneNeverBecomesAPath) {
  Api api(Server{"127.0.0.1", 1, "k"});
  for (const char* id : {"", "../keys", "s1/execs", "s1?x", "S1", "s1\r\n", "s1%2f"})
    EXPECT_EQ(api.remove_sandbox(id).error().code(), Code::kInvalid) << id;
}

TEST(Api, CreateSaysOnlyWhatTheUserSaid) {
  SandboxOptions options;
  options.template_name = "python";
  EXPECT_EQ(boost::json::serialize(create_body(options)), R"({"template":"python"})");
  options.exec.cpu_time = std::chrono::milliseconds(1500);
  options.memory_bytes = 1 << 20;
  options.require = {"landlock"};
  options.idle_ttl = std::chrono::seconds(2);
  EXPECT_EQ(boost::json::serialize(create_body(options)),
            R"({"template":"python","limits":{"cpu_time_ms":1500,"memory_bytes":1048576},)"
            R"("require":["landlock"],"idle_ttl_ms":2000})");
}

TEST(Api, ACreateSaysWhenTheSandboxEnds) {
  EXPECT_EQ(end_text({{"ttl_ms", 300'000}, {"idle_ttl_ms", 120'000}, {"on_ttl", "delete"}}),
            "it is deleted 2m after it was last used, at most 5m after it was made; --idle-ttl, "
            "--ttl (168h at most) and --on-ttl pause keep it longer");
  EXPECT_EQ(end_text({{"ttl_ms", 300'000}, {"idle_ttl_ms", 300'000}, {"on_ttl", "pause"}}),
            "it is paused 5m after it was made");
  EXPECT_EQ(end_text({{"ttl_ms", nullptr}, {"idle_ttl_ms", nullptr}}), "it stays until: atoll rm");
}

}  // namespace
}  // namespace atl::cli
