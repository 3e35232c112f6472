#include "cli/program_output.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace atl::cli
