#include "builder/pack_files.h"

#include <sys/stat.h>

#include "base/file.h"
#include "builder/test_archive_test.h"

namespace atl::builder {
namespace {

class PackFilesTest : public TreeTest {
 protected:
  void add(const std::string& path) {
    std::filesystem::path file = files() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    auto made = open_at(AT_FDCWD, file.string(), O_WRONLY | O_CREAT, 0644);
    ASSERT_TRUE(made.ok() && write_all(made->get(), "of the template").ok());
  }

  Result<void> copy() {
    ATOLL_TRY(Fd from, open_at(AT_FDCWD, files(), O_RDONLY | O_DIRECTORY));
    ATOLL_TRY(Tree tree, Tree::open(root()));
    return copy_pack_files(from.get(), tree.root());
  }

  uid_t owner(const std::string& path) {
    struct stat facts = {};
    EXPECT_EQ(lstat((root() + "/" + path).c_str(), &facts), 0) << path;
    return facts.st_uid;
  }

  std::string files() const { return directory_ + "/files"; }
};

TEST_F(PackFilesTest, FilesOfTheHomeAreTheUsersAndAllOthersAreRoots) {
  add("home/user/.config/tool/settings");
  add("etc/tool/settings");
  ASSERT_TRUE(copy().ok());
  for (const char* path : {"home/user", "home/user/.config", "home/user/.config/tool/settings"})
    EXPECT_EQ(owner(path), 1000u) << path;
  for (const char* path : {"home", "etc/tool", "etc/tool/settings"}) EXPECT_EQ(owner(path), 0u);
  EXPECT_EQ(content("etc/tool/settings"), "of the template");
}

TEST_F(PackFilesTest, DirectoriesOfTheHomeThatWereThereBecomeTheUsers) {
  ASSERT_TRUE(unpack({{"home/user/.config/tool", AE_IFDIR}, {"home/user/other", AE_IFDIR}}).ok());
  add("home/user/.config/tool/settings");
  ASSERT_TRUE(copy().ok());
  EXPECT_EQ(owner("home/user/.config"), 1000u);
  EXPECT_EQ(owner("home/user/.config/tool"), 1000u);
  EXPECT_EQ(owner("home/user/other"), 0u) << "the template has nothing there";
}

TEST_F(PackFilesTest, LinksInTheHomeDoNotGiveAwayWhatIsElsewhere) {
  ASSERT_TRUE(
      unpack({{"etc/tool", AE_IFDIR}, {"home/user/.config", AE_IFLNK, "", "/etc/tool"}}).ok());
  add("home/user/.config/settings");
  ASSERT_TRUE(copy().ok());
  EXPECT_EQ(owner("etc/tool"), 0u);
  EXPECT_EQ(content("etc/tool/settings"), "of the template");
}

}  // namespace
}  // namespace atl::builder
