#include "linux/process_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace atl::linux {
namespace {

std::string value_of(const Facts& facts, std::string_view name) {
  auto found = std::find_if(facts.begin(), facts.end(),
                            [name](const Fact& fact) { return fact.name == name; });
  return found == facts.end() ? "absent" : found->value;
}

TEST(ProcessFacts, AreTheSameFromInsideAndOutside) {
  auto inside = read_process_facts("/proc/self");
  auto outside = read_process_facts("/proc/" + std::to_string(getpid()));
  ASSERT_TRUE(inside.ok()) << inside.error().message();
  ASSERT_TRUE(outside.ok()) << outside.error().message();
  ASSERT_EQ(inside->size(), outside->size());
  for (size_t i = 0; i < inside->size(); ++i) {
    EXPECT_EQ((*inside)[i].name, (*outside)[i].name);
    // Reading one's own descriptors by number shows the one that reads them.
    if ((*inside)[i].name == "descriptors") continue;
    EXPECT_EQ((*inside)[i].value, (*outside)[i].value) << (*inside)[i].name;
  }
}

TEST(ProcessFacts, TellOfOneMoreDescriptor) {
  auto before = read_process_facts("/proc/self");
  Fd one_more(open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto after = read_process_facts("/proc/self");
  ASSERT_TRUE(before.ok() && after.ok());
  std::string number = " " + std::to_string(one_more.get()) + " ";
  EXPECT_EQ((value_of(*before, "descriptors") + " ").find(number), std::string::npos);
  EXPECT_NE((value_of(*after, "descriptors") + " ").find(number), std::string::npos);
}

TEST(ProcessFacts, OfNobodyAreAnError) { EXPECT_FALSE(read_process_facts("/proc/0").ok()); }

TEST(ProcessFacts, SurviveTheJourney) {
  Facts facts = {{"uid", "0 0 0 0"}, {"groups", ""}, {"mounts", as_blob("a\n\xff")}};
  auto decoded = decode_facts(encode_facts(facts));
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size(), 3u);
  EXPECT_EQ((*decoded)[1].value, "");
  EXPECT_EQ((*decoded)[2].value, "blob:610aff");
}

TEST(ProcessFacts, MalformedTextIsRefused) {
  for (const char* text : {"uid 0", "uid\n", " 0\n", "uid 0\n\n", "uid \x01\n", "uid \xff\n"})
    EXPECT_FALSE(decode_facts(text).ok()) << text;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "uid 0\n";
  EXPECT_FALSE(decode_facts(many).ok());
}

}  // namespace
}  // namespace atl::linux
