#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/file.h"

namespace atl {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// The record after its time, which differs from run to run.
std::string record(std::string_view message, LogFields fields) {
  std::string line = format_record(LogLevel::kInfo, message, fields);
  return line.substr(line.find(",\"level\""));
}

// What `write` puts on standard error.
template <typename Action>
std::string standard_error_of(Action write) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  Fd reader(ends[0]), writer(ends[1]);
  Fd saved(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  dup2(writer.get(), STDERR_FILENO);
  write();
  dup2(saved.get(), STDERR_FILENO);
  writer.reset();
  return read_all(reader.get()).value();
}

TEST(Log, RecordIsOneObjectWithItsFieldsInOrder) {
  EXPECT_EQ(record("sandbox ready", {{"sandbox", "s1"}, {"launch_us", 1234}, {"delta", -5}}),
            R"(,"level":"info","process":"atoll","message":"sandbox ready",)"
            R"("sandbox":"s1","launch_us":1234,"delta":-5})");
}

TEST(Log, RecordBeginsWithAnRfc3339Time) {
  std::string line = format_record(LogLevel::kError, "x", {});
  EXPECT_EQ(line.substr(0, 9), R"({"time":")");
  EXPECT_EQ(line[19], 'T');
  EXPECT_EQ(line.substr(32, 19), R"(Z","level":"error",)");
}

TEST(Log, ValueCannotEndItsStringOrItsRecord) {
  std::string forged =
      "x\"}\n{\"time\":\"now\",\"level\":\"error\",\"message\":\"root logged in\"}";
  std::string line = record("exec ended", {{"reason", forged}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"("reason":"x\"}\n{\"time\":\"now\")"), std::string::npos) << line;
}

TEST(Log, MessageAndFieldNameAreEscapedToo) {
  EXPECT_NE(record("a\"b", {}).find(R"("message":"a\"b")"), std::string::npos);
  EXPECT_NE(record("x", {{"n\"m", 1}}).find(R"("n\"m":1)"), std::string::npos);
}

TEST(Log, BackslashAtTheEndDoesNotSwallowTheQuote) {
  EXPECT_EQ(escaped("a\\"), R"("a\\")");
  EXPECT_EQ(escaped("\\\""), R"("\\\"")");
}

TEST(Log, EveryControlCharacterIsEscaped) {
  for (int c = 0; c < 0xa0; ++c) {
    if (c >= 0x20 && c < 0x7f) continue;
    std::string text =
        c < 0x80 ? std::string(1, static_cast<char>(c)) : std::string{'\xc2', static_cast<char>(c)};
    std::string out = escaped(text);
    for (unsigned char byte : out) EXPECT_TRUE(byte >= 0x20 && byte < 0x7f) << c << ": " << out;
  }
  EXPECT_EQ(escaped("\x1b[2J"), R"("\u001b[2J")");
  EXPECT_EQ(escaped("\xc2\x9b"), R"("\u009b")") << "one-character form of escape-bracket";
  EXPECT_EQ(escaped(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(Log, Utf8StaysAndOtherBytesAreReplaced) {
  EXPECT_EQ(escaped("é€😀"), "\"é€😀\"");
  EXPECT_EQ(escaped("a\xff\xfe"), R"("a\ufffd\ufffd")");
  EXPECT_EQ(escaped("\xc0\xaf"), R"("\ufffd\ufffd")") << "overlong slash";
  EXPECT_EQ(escaped("\xe2\x82"), R"("\ufffd\ufffd")") << "cut short";
}

TEST(Log, LongValueIsCut) {
  std::string line = record("x", {{"v", std::string(1'000'000, 'a')}});
  EXPECT_LT(line.size(), 4096u);
  EXPECT_EQ(line.back(), '}');
}

TEST(Log, ErrorBecomesItsMessage) {
  Error error = Error(Code::kDenied, "mount overlay: denied").with_context("launch s1");
  EXPECT_NE(record("x", {error}).find(R"("error":"launch s1: mount overlay: denied")"),
            std::string::npos);
}

TEST(Log, WritesOneLineAndNothingBelowTheLeastLevel) {
  configure_log("atolld", LogLevel::kWarning);
  std::string output = standard_error_of([] {
    log_info("quiet");
    log_warning("loud");
  });
  configure_log("atoll", LogLevel::kInfo);
  EXPECT_EQ(output.find("quiet"), std::string::npos);
  EXPECT_NE(output.find(R"("process":"atolld","message":"loud"})"), std::string::npos) << output;
  EXPECT_EQ(output.find('\n'), output.size() - 1);
}

TEST(Log, LongProcessNameIsCutNotOverrun) {
  configure_log(std::string(100, 'p'), LogLevel::kInfo);
  std::string line = record("x", {});
  configure_log("atoll", LogLevel::kInfo);
  EXPECT_NE(line.find("\"process\":\"" + std::string(23, 'p') + "\""), std::string::npos) << line;
}

}  // namespace
}  // namespace atl
