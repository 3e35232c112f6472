#include "store/template_pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/tar_writer.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

constexpr const char* kManifest = "name = \"mine\"\n[image]\nrootfs_tar = \"root.tar\"\n";

struct File {
  std::string path, text;
  uint32_t mode = 0644;
};

class TemplatePackTest : public testing::Test {
 protected:
  Fd pack(const std::vector<File>& files) {
    Fd file = *open_file(directory_.path(), O_RDWR | O_TMPFILE, 0600);
    for (const File& one : files) {
      TarEntry entry;
      entry.path = one.path;
      entry.mode = one.mode;
      entry.size = one.text.size();
      std::string bytes = tar_header(entry) + one.text + tar_padding(entry.size);
      EXPECT_TRUE(write_all(file.get(), bytes).ok());
    }
    EXPECT_TRUE(write_all(file.get(), tar_end()).ok());
    return file;
  }
  Result<TemplatePack> open(const std::vector<File>& files) {
    return open_template_pack(pack(files));
  }

  TestDirectory directory_;
};

TEST_F(TemplatePackTest, GivesTheManifest) {
  auto found = open({{"./template.toml", kManifest}, {"root.tar", "bytes"}});
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->manifest.name, "mine");
  EXPECT_EQ(found->manifest_text, kManifest);
}

TEST_F(TemplatePackTest, InputsAreWhatIsInItHoweverItIsPacked) {
  auto one = open({{"template.toml", kManifest}, {"a", "1"}, {"b", "2"}});
  auto other = open({{"./b", "2"}, {"./a", "1", 0600}, {"./template.toml", kManifest}});
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->inputs, other->inputs);
  EXPECT_NE(one->digest, other->digest);
  for (const std::vector<File>& changed : std::vector<std::vector<File>>{
           {{"template.toml", kManifest}, {"a", "1"}, {"b", "3"}},
           {{"template.toml", kManifest}, {"a", "1"}, {"c", "2"}},
           {{"template.toml", kManifest}, {"a", "1", 0755}, {"b", "2"}},
           {{"template.toml", kManifest}, {"a", "1"}},
           {{"template.toml", std::string(kManifest) + "#"}, {"a", "1"}, {"b", "2"}}}) {
    auto third = open(changed);
    ASSERT_TRUE(third.ok());
    EXPECT_NE(one->inputs, third->inputs);
  }
}

TEST_F(TemplatePackTest, RefusesWhatIsNoPack) {
  for (const std::vector<File>& files : std::vector<std::vector<File>>{
           {},
           {{"sub/template.toml", kManifest}},
           {{"template.toml", kManifest}, {"./template.toml", kManifest}},
           {{"template.toml", "name = \"mine\"\n"}},
           {{"template.toml", std::string(300 * 1024, '#')}}}) {
    auto found = open(files);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().reason(), "invalid_template") << found.error().message();
  }
}

TEST_F(TemplatePackTest, AFolderIsTheSameAsItsPack) {
  std::string folder = directory_.path() + "/folder";
  std::filesystem::create_directories(folder + "/files/etc");
  ASSERT_TRUE(replace_file(folder + "/template.toml", kManifest, 0644).ok());
  ASSERT_TRUE(replace_file(folder + "/files/etc/x", "text", 0644).ok());
  auto file = pack_folder(folder, directory_.path());
  ASSERT_TRUE(file.ok());
  auto found = open_template_pack(std::move(*file));
  ASSERT_TRUE(found.ok()) << found.error().message();
  auto same = open({{"files/etc/x", "text"}, {"template.toml", kManifest}});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(found->inputs, same->inputs);
  auto alone = pack_manifest(kManifest, directory_.path());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(open_template_pack(std::move(*alone))->manifest.name, "mine");
}

TEST_F(TemplatePackTest, PacksAreKeptUntilNothingNamesThem) {
  auto packs = TemplatePacks::open(directory_.path() + "/packs");
  ASSERT_TRUE(packs.ok());
  auto one = open({{"template.toml", kManifest}});
  auto two = open({{"template.toml", kManifest}, {"x", "y"}});
  ASSERT_TRUE(packs->keep(*one).ok());
  ASSERT_TRUE(packs->keep(*one).ok()) << "twice is once";
  ASSERT_TRUE(packs->keep(*two).ok());
  ASSERT_TRUE(packs->find(one->digest).ok());
  ASSERT_TRUE(packs->keep_only({two->digest}).ok());
  EXPECT_FALSE(packs->find(one->digest).ok());
  EXPECT_TRUE(packs->find(two->digest).ok());
}

}  // namespace
}  // namespace atl::store
