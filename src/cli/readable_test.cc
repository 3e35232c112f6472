#include "cli/readable.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace atl::cli {
namespace {

std::string shown(const char* text) { return readable(boost::json::parse(text)); }

TEST(Readable, JsonHasNumbersAsPeopleWriteThem) {
  boost::json::value value =
      boost::json::parse(R"({"ms":1.1458E1,"n":[0.001,12,-3,1e-7],"s":"\u00e9\n","o":{}})");
  EXPECT_EQ(json_text(value), R"({"ms":11.458,"n":[0.001,12,-3,1e-07],"s":"é\n","o":{}})");
}

TEST(Readable, ShowsNumbersWithoutExponents) {
  EXPECT_EQ(shown("2.8946E1"), "28.946");
  EXPECT_EQ(shown("9.0849E-1"), "0.908");
  EXPECT_EQ(shown("1.0"), "1");
  EXPECT_EQ(shown("100"), "100");
  EXPECT_EQ(shown("0.00001"), "0");
}

TEST(Readable, ShowsObjectsAndListsOnOneLine) {
  EXPECT_EQ(shown(R"({"run_ms":1.5,"name":"x","none":null})"), "run_ms 1.5, name x, none -");
  EXPECT_EQ(shown(R"(["a",true])"), "a, true");
  EXPECT_EQ(shown("{}"), "-");
}

TEST(Readable, EscapesNamesAndTexts) {
  EXPECT_EQ(shown(R"({"a\u001b":"b\nc"})"), "a\\x1b b\\x0ac");
}

TEST(Readable, ADurationIsInItsLargestWholeUnit) {
  EXPECT_EQ(readable_duration(500), "500ms");
  EXPECT_EQ(readable_duration(90'000), "90s");
  EXPECT_EQ(readable_duration(120'000), "2m");
  EXPECT_EQ(readable_duration(3'600'000), "1h");
  EXPECT_EQ(readable_duration(7 * 86'400'000), "7d");
  EXPECT_EQ(readable_duration(0), "0ms");
}

}  // namespace
}  // namespace atl::cli
