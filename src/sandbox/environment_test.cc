#include "sandbox/environment.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace atl::sandbox {
namespace {

bool has(const std::vector<std::string>& environment, const std::string& variable) {
  return std::find(environment.begin(), environment.end(), variable) != environment.end();
}

TEST(Environment, LaterValuesReplaceEarlierOnes) {
  auto environment = compose_environment(1000, {{{"A", "1"}, {"HOME", "/x"}}, {{"A", "2"}}});
  EXPECT_TRUE(has(environment, "A=2"));
  EXPECT_FALSE(has(environment, "A=1"));
  EXPECT_TRUE(has(environment, "HOME=/x"));
}

TEST(Environment, LeavesTheUserToTheAgent) {
  for (const std::string& variable : compose_environment(1000, {}))
    EXPECT_FALSE(variable.starts_with("HOME=") || variable.starts_with("USER=")) << variable;
}

TEST(Environment, ThreadCountsFollowTheCpuLimit) {
  EXPECT_TRUE(has(compose_environment(100, {}), "OMP_NUM_THREADS=1"));
  EXPECT_TRUE(has(compose_environment(1500, {}), "OMP_NUM_THREADS=2"));
  EXPECT_TRUE(has(compose_environment(4000, {}), "GOMAXPROCS=4"));
}

TEST(Environment, NamesAreThoseThatAShellCouldUse) {
  for (const char* name : {"A", "_", "a1", "LD_PRELOAD"}) EXPECT_TRUE(is_variable_name(name));
  for (const char* name : {"", "1a", "A=B", "a b", "ä", "a-b", "A\n"})
    EXPECT_FALSE(is_variable_name(name)) << name;
}

}  // namespace
}  // namespace atl::sandbox
