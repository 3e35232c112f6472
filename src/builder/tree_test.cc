#include "builder/tree.h"

#include <sys/stat.h>

#include "builder/test_archive_test.h"

namespace atl::builder {
namespace {

using Kind = Tree::Kind;

TEST_F(TreeTest, KeepsOwnersModesTimesAndLinks) {
  ASSERT_TRUE(unpack({{"d", AE_IFDIR, "", "", "", 0700, 1000, 1001, 1'500'000'000},
                      {"d/f", AE_IFREG, "text", "", "", 0640, 1000, 1001},
                      {"d/l", AE_IFLNK, "", "f"},
                      {"d/h", AE_IFREG, "", "", "d/f"}})
                  .ok());
  struct stat facts, other;
  ASSERT_EQ(stat((root() + "/d/f").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 1000u);
  EXPECT_EQ(facts.st_gid, 1001u);
  EXPECT_EQ(facts.st_mode & 07777, 0640u);
  EXPECT_EQ(facts.st_mtim.tv_sec, 1'600'000'000);
  ASSERT_EQ(stat((root() + "/d/h").c_str(), &other), 0);
  EXPECT_EQ(facts.st_ino, other.st_ino);
  EXPECT_EQ(content("d/l"), "text");
  ASSERT_EQ(stat((root() + "/d").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mtim.tv_sec, 1'500'000'000) << "a directory's own time comes last";
}

TEST_F(TreeTest, DropsSetUserIdAndKeepsSticky) {
  ASSERT_TRUE(unpack({{"su", AE_IFREG, "x", "", "", 04755},
                      {"sg", AE_IFREG, "x", "", "", 02755},
                      {"t", AE_IFDIR, "", "", "", 01777}})
                  .ok());
  struct stat facts;
  ASSERT_EQ(stat((root() + "/su").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0755u);
  ASSERT_EQ(stat((root() + "/sg").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0755u);
  ASSERT_EQ(stat((root() + "/t").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 01777u);
}

TEST_F(TreeTest, RefusesParentDirectories) {
  auto done = unpack({{"a/../../outside", AE_IFREG, "evil"}});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::kInvalid);
  EXPECT_TRUE(outside_is_intact());
}

TEST_F(TreeTest, TakesAbsoluteNamesAsInside) {
  ASSERT_TRUE(unpack({{"/etc/x", AE_IFREG, "inside"}}).ok());
  EXPECT_EQ(content("etc/x"), "inside");
}

TEST_F(TreeTest, ALinkOutLeadsInside) {
  // Between entries, and between archives.
  ASSERT_TRUE(unpack({{"way", AE_IFLNK, "", ".."}, {"way/outside", AE_IFREG, "evil"}}).ok());
  ASSERT_TRUE(unpack({{"abs", AE_IFLNK, "", directory_}}).ok());
  auto through = unpack({{"abs/outside", AE_IFREG, "evil"}});
  EXPECT_TRUE(outside_is_intact());
  EXPECT_EQ(content("outside"), "evil") << "resolved in the root, where .. of it is itself";
  EXPECT_EQ(content(directory_.substr(1) + "/outside"), through.ok() ? "evil" : "(absent)");
}

TEST_F(TreeTest, AFileReplacesALinkOfItsName) {
  ASSERT_TRUE(unpack({{"x", AE_IFLNK, "", "../outside"}, {"x", AE_IFREG, "mine"}}).ok());
  EXPECT_EQ(content("x"), "mine");
  EXPECT_TRUE(outside_is_intact());
}

TEST_F(TreeTest, HardLinksStayInside) {
  EXPECT_FALSE(unpack({{"h", AE_IFREG, "", "", "../outside"}}).ok());
  EXPECT_FALSE(unpack({{"h", AE_IFREG, "", "", directory_ + "/outside"}}).ok());
  ASSERT_TRUE(unpack({{"way", AE_IFLNK, "", ".."}}).ok());
  EXPECT_FALSE(unpack({{"h", AE_IFREG, "", "", "way/outside"}}).ok());
  EXPECT_FALSE(unpack({{"d", AE_IFDIR}, {"h", AE_IFREG, "", "", "d"}}).ok());
  struct stat facts;
  ASSERT_EQ(stat((directory_ + "/outside").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_nlink, 1u);
}

TEST_F(TreeTest, LeavesOutDevicesSocketsAndPipes) {
  ASSERT_TRUE(unpack({{"null", AE_IFCHR}, {"disk", AE_IFBLK}, {"pipe", AE_IFIFO}}).ok());
  EXPECT_EQ(left_out_, 3u);
  EXPECT_TRUE(std::filesystem::is_empty(root()));
}

TEST_F(TreeTest, RefusesOwnersBeyondTheRange) {
  EXPECT_FALSE(unpack({{"f", AE_IFREG, "x", "", "", 0644, 65536}}).ok());
  EXPECT_FALSE(unpack({{"f", AE_IFREG, "x", "", "", 0644, 0, 4294967295}}).ok());
  EXPECT_TRUE(unpack({{"f", AE_IFREG, "x", "", "", 0644, 65535, 65535}}).ok());
}

TEST_F(TreeTest, RefusesNamesThatAreTooLongOrTooDeep) {
  EXPECT_FALSE(unpack({{std::string(256, 'n'), AE_IFREG, "x"}}).ok());
  EXPECT_TRUE(unpack({{std::string(255, 'n'), AE_IFREG, "x"}}).ok());
  std::string deep;
  for (int i = 0; i < 129; ++i) deep += "d/";
  EXPECT_FALSE(unpack({{deep + "f", AE_IFREG, "x"}}).ok());
}

TEST_F(TreeTest, KeepsNamesThatAreBytes) {
  std::string odd = "new\nline \033[31m \xf0\x9f\x90\x9a";
  ASSERT_TRUE(unpack({{odd, AE_IFREG, "x"}}).ok());
  EXPECT_EQ(content(odd), "x");
}

TEST_F(TreeTest, TimesBeyondAllReasonAreBounded) {
  ASSERT_TRUE(unpack({{"old", AE_IFREG, "x", "", "", 0644, 0, 0, -5},
                      {"new", AE_IFREG, "x", "", "", 0644, 0, 0, 1ll << 40}})
                  .ok());
  struct stat facts;
  ASSERT_EQ(stat((root() + "/old").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mtim.tv_sec, 0);
  ASSERT_EQ(stat((root() + "/new").c_str(), &facts), 0);
  EXPECT_LE(facts.st_mtim.tv_sec, 2'000'000'000);
}

TEST_F(TreeTest, StopsAtItsBudget) {
  budget_.entries = 2;
  EXPECT_FALSE(unpack({{"a"}, {"b"}, {"c"}}).ok());
  budget_ = {.entries = 10, .bytes = 10};
  EXPECT_FALSE(unpack({{"a", AE_IFREG, "0123456789x"}}).ok());
}

TEST_F(TreeTest, RefusesABomb) {
  Fd file = make_archive({{"zeros", AE_IFREG, std::string(100 << 20, '\0')}}, true);
  auto tree = Tree::open(root());
  ASSERT_TRUE(tree.ok());
  auto archive = ArchiveFile::open(file.get(), budget_);
  ASSERT_TRUE(archive.ok());
  auto added = tree->add(*archive, Kind::kPlain, {});
  ASSERT_FALSE(added.ok());
  EXPECT_NE(added.error().message().find("1000 times"), std::string::npos);
}

TEST_F(TreeTest, RefusesWhatIsNoArchive) {
  Fd file(memfd_create("noise", 0));
  std::string noise(5000, 'x');
  ASSERT_EQ(write(file.get(), noise.data(), noise.size()), 5000);
  auto archive = ArchiveFile::open(file.get(), budget_);
  EXPECT_TRUE(!archive.ok() || !archive->next().ok());
}

TEST_F(TreeTest, WhiteoutsHideWhatIsBelow) {
  ASSERT_TRUE(unpack({{"d", AE_IFDIR}, {"d/old", AE_IFREG, "1"}, {"gone/x", AE_IFREG, "1"}}).ok());
  ASSERT_TRUE(unpack({{"d/new", AE_IFREG, "2"}, {"d/.wh.old", AE_IFREG}, {".wh.gone", AE_IFREG}},
                     Kind::kLayer)
                  .ok());
  EXPECT_EQ(content("d/old"), "(absent)");
  EXPECT_EQ(content("d/new"), "2");
  EXPECT_FALSE(std::filesystem::exists(root() + "/gone"));
  EXPECT_FALSE(std::filesystem::exists(root() + "/d/.wh.old"));
}

TEST_F(TreeTest, AnOpaqueDirectoryHidesOnlyWhatIsBelow) {
  ASSERT_TRUE(unpack({{"d/old", AE_IFREG, "1"}}).ok());
  // The mark comes after what the same layer brings.
  ASSERT_TRUE(unpack({{"d/new", AE_IFREG, "2"}, {"d/.wh..wh..opq", AE_IFREG}}, Kind::kLayer).ok());
  EXPECT_EQ(content("d/old"), "(absent)");
  EXPECT_EQ(content("d/new"), "2");
}

TEST_F(TreeTest, WhiteoutsThroughLinksStayInside) {
  ASSERT_TRUE(unpack({{"way", AE_IFLNK, "", ".."}}).ok());
  ASSERT_TRUE(
      unpack({{"way/.wh.outside", AE_IFREG}, {"way/.wh..wh..opq", AE_IFREG}}, Kind::kLayer).ok());
  EXPECT_TRUE(outside_is_intact());
  EXPECT_FALSE(unpack({{".wh...", AE_IFREG}}, Kind::kLayer).ok());
}

TEST_F(TreeTest, ADirectoryAndAFileChangePlaces) {
  ASSERT_TRUE(unpack({{"a/x", AE_IFREG, "1"}, {"b", AE_IFREG, "1"}}).ok());
  ASSERT_TRUE(
      unpack({{"a", AE_IFREG, "2"}, {"b", AE_IFDIR}, {"b/y", AE_IFREG, "2"}}, Kind::kLayer).ok());
  EXPECT_EQ(content("a"), "2");
  EXPECT_EQ(content("b/y"), "2");
}

}  // namespace
}  // namespace atl::builder
