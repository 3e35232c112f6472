#include "warden/options.h"

#include <vector>

#include <gtest/gtest.h>

namespace atl::warden {
namespace {

Result<Options> parse(std::vector<const char*> arguments) {
  std::vector<char*> pointers;
  for (const char* argument : arguments) pointers.push_back(const_cast<char*>(argument));
  return parse_options(pointers);
}

TEST(Options, ReadsAllOfThem) {
  auto options =
      parse({"--state-dir", "/s", "--run-dir", "/r", "--client-uid", "7", "--agent", "/a", "--sudo",
             "/u", "--notary", "/n", "--pool-bytes", "4096", "--kernel-memory-growth", "8192"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->state_dir, "/s");
  EXPECT_EQ(options->run_dir, "/r");
  EXPECT_EQ(options->client_uid, 7u);
  EXPECT_EQ(options->agent, "/a");
  EXPECT_EQ(options->sudo, "/u");
  EXPECT_EQ(options->notary, "/n");
  EXPECT_EQ(options->pool_bytes, 4096u);
  EXPECT_EQ(options->kernel_memory_growth, 8192u);
  EXPECT_EQ(options->mode, Mode::kServe);
}

TEST(Options, RemoveAllNeedsOnlyTheDirectories) {
  auto options = parse({"--remove-all", "--state-dir", "/s", "--run-dir", "/r"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->mode, Mode::kRemoveAll);
}

TEST(Options, RefusesWhatItDoesNotKnowOrCannotRead) {
  std::vector<const char*> good = {"--state-dir", "/s", "--run-dir", "/r", "--client-uid", "7",
                                   "--agent",     "/a", "--notary",  "/n", "--sudo",       "/u"};
  ASSERT_TRUE(parse(good).ok());
  for (std::vector<const char*> extra :
       std::vector<std::vector<const char*>>{{"--verbose", "1"},
                                             {"--agent", "/b"},
                                             {"--pool-bytes"},
                                             {"--pool-bytes", "12x"},
                                             {"--pool-bytes", "-1"},
                                             {"--pool-bytes", ""}}) {
    std::vector<const char*> all = good;
    all.insert(all.end(), extra.begin(), extra.end());
    EXPECT_FALSE(parse(all).ok()) << extra[0];
  }
  for (size_t missing = 0; missing < good.size(); missing += 2) {
    std::vector<const char*> some = good;
    some.erase(some.begin() + static_cast<long>(missing),
               some.begin() + static_cast<long>(missing) + 2);
    EXPECT_FALSE(parse(some).ok()) << good[missing];
  }
}

TEST(Options, RefusesPathsThatAreNotPlain) {
  for (const char* path : {"s", "", "/", "/s/", "/a/../s", "/a//s", "/a/./s", "/a/..", "/a\nb"})
    EXPECT_FALSE(parse({"--remove-all", "--state-dir", path, "--run-dir", "/r"}).ok()) << path;
}

}  // namespace
}  // namespace atl::warden
