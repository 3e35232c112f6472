#include "builder/removals.h"

#include <unistd.h>

#include "builder/test_archive_test.h"

namespace atl::builder {
namespace {

bool is_there(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

class Removals : public TreeTest {
 protected:
  uint64_t remove(const std::vector<std::string>& globs) {
    Fd directory(open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto removed = remove_matching(directory.get(), globs);
    EXPECT_TRUE(removed.ok()) << removed.error().message();
    return removed.ok() ? *removed : 0;
  }
};

TEST_F(Removals, TakeWhatMatchesAndAllBeneathAndNothingElse) {
  ASSERT_TRUE(unpack({{"usr/include/a/b.h"},
                      {"usr/include/c.h"},
                      {"usr/lib/x.a"},
                      {"usr/lib/x.so"},
                      {"usr/lib/p/tests/t.py"},
                      {"usr/lib/p/q/tests/t.py"},
                      {"usr/share/doc/p/copyright"},
                      {"usr/share/man/m.1"}})
                  .ok());
  EXPECT_EQ(remove({"/usr/include/*", "/usr/lib/*.a", "/usr/lib/*/tests", "/usr/share/[!d]*"}), 5u);
  for (const char* gone :
       {"usr/include/a", "usr/include/c.h", "usr/lib/x.a", "usr/lib/p/tests", "usr/share/man"})
    EXPECT_FALSE(is_there(root() + "/" + gone)) << gone;
  for (const char* kept :
       {"usr/include", "usr/lib/x.so", "usr/lib/p/q/tests/t.py", "usr/share/doc/p/copyright"})
    EXPECT_TRUE(is_there(root() + "/" + kept)) << kept;
}

TEST_F(Removals, GoThroughNoLink) {
  ASSERT_TRUE(unpack({{"way", AE_IFLNK, "", directory_}, {"d/f"}, {"l", AE_IFLNK, "", "d"}}).ok());
  EXPECT_EQ(remove({"/way/*", "/l/*"}), 0u);
  EXPECT_TRUE(outside_is_intact());
  EXPECT_TRUE(is_there(root() + "/d/f"));
  EXPECT_EQ(remove({"/l"}), 1u);
  EXPECT_TRUE(is_there(root() + "/d/f"));
}

TEST_F(Removals, ABadGlobIsAnError) {
  ASSERT_TRUE(unpack({{"f"}}).ok());
  Fd directory(open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(remove_matching(directory.get(), {"/[a"}).ok());
}

}  // namespace
}  // namespace atl::builder
