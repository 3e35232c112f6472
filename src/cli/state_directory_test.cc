#include "cli/state_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

constexpr Identity kNobody{65534, 65534};

std::string mode_and_owner(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return "absent";
  char text[32];
  snprintf(text, sizeof text, "%o %u", status.st_mode & 07777, status.st_uid);
  return text;
}

class Directories : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  }
  TempDir dir_;
  Places places_ = Places::beneath(dir_ / "a/state");
};

TEST_F(Directories, HaveTheirOwnersAndModes) {
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(make_state_directories(places_, kNobody).ok());
    ASSERT_TRUE(make_run_directories(places_, kNobody).ok());
    EXPECT_EQ(mode_and_owner(places_.state), "755 0");
    EXPECT_EQ(mode_and_owner(places_.daemon_state()), "700 65534");
    EXPECT_EQ(mode_and_owner(places_.images()), "755 0");
    EXPECT_EQ(mode_and_owner(places_.templates()), "755 0");
    EXPECT_EQ(mode_and_owner(places_.logs()), "750 0");
    EXPECT_EQ(mode_and_owner(places_.run), "755 0");
    EXPECT_EQ(mode_and_owner(places_.agents()), "700 65534");
    EXPECT_EQ(mode_and_owner(places_.daemon_run()), "755 65534");
  }
}

TEST_F(Directories, RefuseAStateDirectoryThatOthersCanChangeAndLeaveItAlone) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  EXPECT_EQ(make_state_directories(Places::beneath(dir_.path()), kNobody).error().code(),
            Code::kDenied);
  EXPECT_EQ(mode_and_owner(dir_.path()), "1777 0");
}

TEST_F(Directories, RefuseAPlaceThatTheDaemonCannotEnter) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 0700), 0);
  auto made = make_state_directories(places_, kNobody);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message().find(dir_.path()), std::string::npos);
}

TEST_F(Directories, RefuseALinkInPlaceOfADirectory) {
  std::filesystem::create_directories(places_.state);
  ASSERT_EQ(symlink("/etc", places_.daemon_state().c_str()), 0);
  EXPECT_FALSE(make_state_directories(places_, kNobody).ok());
  EXPECT_EQ(mode_and_owner("/etc"), "755 0");
}

TEST(RemoveTree, RemovesEverythingButWhatLinksPointTo) {
  TempDir dir;
  std::filesystem::create_directories(dir / "tree/a/b");
  write_text(dir / "tree/a/b/file", "x");
  write_text(dir / "kept", "x");
  std::filesystem::create_symlink(dir / "kept", dir / "tree/a/link");
  std::filesystem::create_symlink(dir.path(), dir / "tree/up");
  ASSERT_TRUE(remove_tree(dir / "tree").ok());
  EXPECT_FALSE(std::filesystem::exists(dir / "tree"));
  EXPECT_TRUE(std::filesystem::exists(dir / "kept"));
}

TEST(RemoveTree, RemovingNothingIsASuccessAndALinkIsRefused) {
  TempDir dir;
  EXPECT_TRUE(remove_tree(dir / "absent").ok());
  std::filesystem::create_directory(dir / "real");
  std::filesystem::create_symlink(dir / "real", dir / "link");
  EXPECT_FALSE(remove_tree(dir / "link").ok());
  EXPECT_TRUE(std::filesystem::exists(dir / "real"));
}

}  // namespace
}  // namespace atl::cli
