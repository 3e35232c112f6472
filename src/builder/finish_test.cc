#include "builder/finish.h"

#include <sys/stat.h>

#include "builder/test_archive_test.h"

namespace atl::builder {
namespace {

class FinishTest : public TreeTest {
 protected:
  Result<void> finish() {
    ATOLL_TRY(Tree tree, Tree::open(root()));
    return finish_tree(tree);
  }
};

TEST_F(FinishTest, AnEmptyRootBecomesUsable) {
  ASSERT_TRUE(finish().ok());
  for (const char* name : {"dev", "proc", "sys", "run", "tmp", "var/tmp", "home/user"})
    EXPECT_TRUE(std::filesystem::is_directory(root() + "/" + name)) << name;
  EXPECT_NE(content("etc/passwd").find("user:*:1000:1000::/home/user:/bin/sh"), std::string::npos);
  EXPECT_EQ(content("etc/resolv.conf"), "");
  struct stat facts;
  ASSERT_EQ(stat((root() + "/home/user").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 1000u);
}

TEST_F(FinishTest, MountPointsThatAreLinksBecomeDirectories) {
  ASSERT_TRUE(unpack({{"dev", AE_IFLNK, "", directory_},
                      {"proc", AE_IFLNK, "", "/etc"},
                      {"run", AE_IFREG, "file"},
                      {"tmp", AE_IFLNK, "", "../.."}})
                  .ok());
  ASSERT_TRUE(finish().ok());
  for (const char* name : {"dev", "proc", "run", "tmp"})
    EXPECT_TRUE(std::filesystem::is_directory(std::filesystem::symlink_status(root() + "/" + name)))
        << name;
  EXPECT_TRUE(outside_is_intact());
}

TEST_F(FinishTest, LinksInEtcAndHomeStayInside) {
  ASSERT_TRUE(unpack({{"etc", AE_IFLNK, "", directory_}, {"home", AE_IFLNK, "", ".."}}).ok());
  ASSERT_TRUE(finish().ok());
  EXPECT_TRUE(outside_is_intact());
}

TEST_F(FinishTest, WhoHasTheIdKeepsIt) {
  ASSERT_TRUE(unpack({{"etc/passwd", AE_IFREG,
                       "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/bash\n"}})
                  .ok());
  ASSERT_TRUE(finish().ok());
  EXPECT_EQ(content("etc/passwd").find("user:"), std::string::npos);
}

TEST_F(FinishTest, LoginShellsNeedNoProgramToKnowWhoTheyAre) {
  std::string ask = "if [ \"$(id -u)\" -eq 0 ]; then\n  a\nfi\n[ \"$(id -u)\" -eq 0 ]\n";
  std::string know =
      "if [ \"${EUID:-$(id -u)}\" -eq 0 ]; then\n  a\nfi\n"
      "[ \"${EUID:-$(id -u)}\" -eq 0 ]\n";
  ASSERT_TRUE(unpack({{"etc/profile", AE_IFREG, ask}}).ok());
  ASSERT_TRUE(finish().ok());
  EXPECT_EQ(content("etc/profile"), know);
  ASSERT_TRUE(finish().ok());
  EXPECT_EQ(content("etc/profile"), know);
}

}  // namespace
}  // namespace atl::builder
