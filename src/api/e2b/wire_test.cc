// The small forms of the wire: envelopes, gzip, paths, lines of results.
#include <gtest/gtest.h>

#include "api/e2b/envelope.h"
#include "api/e2b/failure.h"
#include "api/e2b/gunzip.h"
#include "api/e2b/path.h"
#include "api/e2b/result_json.h"

namespace atl::api::e2b {
namespace {

TEST(Envelope, IsFlagLengthAndText) {
  EXPECT_EQ(envelope("{}"), std::string("\0\0\0\0\2{}", 7));
  EXPECT_EQ(end_of_stream(), std::string("\2\0\0\0\2{}", 7));
  EXPECT_EQ(only_message(envelope("{\"a\":1}")), "{\"a\":1}");
  EXPECT_FALSE(only_message(envelope("{}") + "x"));
  EXPECT_FALSE(only_message(std::string("\1\0\0\0\2{}", 7))) << "compressed";
  EXPECT_FALSE(only_message("ab"));
}

TEST(Envelope, IsCutOutOfAStream) {
  Envelopes envelopes;
  std::string bytes = envelope("one") + envelope("two");
  std::string told;
  for (char byte : bytes) {
    envelopes.add(std::string_view(&byte, 1));
    auto next = envelopes.next();
    ASSERT_TRUE(next.ok());
    if (*next) told += **next + ";";
  }
  EXPECT_EQ(told, "one;two;");
  envelopes.add(std::string("\0\xff\xff\xff\xff", 5));
  EXPECT_FALSE(envelopes.next().ok());
}

TEST(Failure, HasTheShapeOfItsRoute) {
  Error error = Error(Code::kNotFound, "gone").with_reason("file_not_found");
  http::Response control = control_failure(error, "r");
  EXPECT_EQ(control.status, 404);
  EXPECT_TRUE(control.body.starts_with("{\"code\":404,\"message\":\"gone"));
  http::Response rpc = rpc_failure(error, "r");
  EXPECT_EQ(rpc.status, 404);
  EXPECT_TRUE(rpc.body.starts_with("{\"code\":\"not_found\",\"message\":\"gone"));
  http::Response stream = stream_failure(error, "r");
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.body[0], 2);
  Error away = Error(Code::kUnavailable, "away").with_reason("sandbox_away");
  for (auto failure : {control_failure, rpc_failure, stream_failure, text_failure}) {
    EXPECT_EQ(failure(away, "r").status, 502);
    EXPECT_EQ(failure(away, "r").body, "{\"code\":502,\"message\":\"away\"}");
  }
  Error inner(Code::kSystem, "open /var/lib/secret: denied");
  EXPECT_EQ(control_failure(inner, "r").body.find("secret"), std::string::npos);
}

// What comes of it in steps of that many bytes; "error" if it is refused.
std::string unzipped(std::string_view zipped, size_t step) {
  Gunzip gunzip;
  std::string plain;
  for (; !zipped.empty(); zipped.remove_prefix(std::min(step, zipped.size()))) {
    std::string_view bytes = zipped.substr(0, step);
    Result<std::string> part = std::string("x");
    while (part && (!part->empty() || !bytes.empty())) {
      part = gunzip.take(bytes);
      plain += part ? *part : "error";
    }
  }
  return gunzip.finished() ? plain : plain + "…";
}

TEST(Gunzip, GivesBackWhatWasZipped) {
  // printf hello | gzip -n
  const std::string zipped(
      "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);
  for (size_t step : {1, 10, 100}) EXPECT_EQ(unzipped(zipped, step), "hello");
  EXPECT_EQ(unzipped(zipped.substr(0, 20), 100), "hello…") << "cut short";
  EXPECT_EQ(unzipped(zipped + "x", 25), "helloerror") << "goes on after its end";
  EXPECT_EQ(unzipped("not zipped at all", 100), "error…");
}

TEST(Path, IsThatOfTheUser) {
  EXPECT_EQ(*resolve_path("", "user"), "/home/user");
  EXPECT_EQ(*resolve_path("a/b", "user"), "/home/user/a/b");
  EXPECT_EQ(*resolve_path("~/a", "root"), home_of("root") + "/a");
  EXPECT_EQ(*resolve_path("/a//./b/../c/", "user"), "/a/c");
  EXPECT_EQ(*resolve_path("/../..", "user"), "/");
  EXPECT_FALSE(resolve_path("~other/a", "user").ok());
  EXPECT_FALSE(resolve_path(std::string("/a\0b", 4), "user").ok());
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(name_of("/a/b"), "b");
}

TEST(ResultLine, HasTheNamesOfTheClients) {
  sandbox::RunResult result{true,
                            {{"text/plain", "'quoted'"},
                             {"text/html", "<b>"},
                             {"application/json", "{\"a\":1}"},
                             {"application/vnd.atoll.dataframe+json",
                              "{\"columns\":[\"a\",\"b\"],\"index\":[0,1],\"data\":[[1,2],[3,4]]}"},
                             {"x/y", "z"}}};
  EXPECT_EQ(ascii_line(result_line(result)),
            "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"quoted\",\"html\":\"<b>\","
            "\"json\":{\"a\":1},\"data\":{\"a\":[1,3],\"b\":[2,4]},\"extra\":{\"x/y\":\"z\"}}\n");
}

TEST(ResultLine, IsAscii) {
  EXPECT_EQ(ascii_line(boost::json::value("ü€😀\n")), "\"\\u00fc\\u20ac\\ud83d\\ude00\\n\"\n");
}

}  // namespace
}  // namespace atl::api::e2b
