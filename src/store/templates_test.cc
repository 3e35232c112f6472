#include "store/templates.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/sha256.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

Templates open_or_die(const std::string& path) {
  auto templates = Templates::open(path);
  if (!templates) ADD_FAILURE() << templates.error().message();
  return std::move(templates).value();
}

class TemplatesTest : public testing::Test {
 protected:
  TemplatesTest() : templates_(open_or_die(directory_.path())) {}

  void write(const std::string& name, const std::string& file, const std::string& text) {
    ASSERT_TRUE(make_directory(directory_ / name, 0755).ok());
    ASSERT_TRUE(replace_file(directory_ / (name + "/" + file), text, 0644).ok());
  }
  void add(const std::string& name, const std::string& memory, const Digest& image) {
    write(
        name, "template.toml",
        "name = \"" + name + "\"\n[image]\noci = \"x\"\n[defaults]\nmemory = \"" + memory + "\"\n");
    write(name, "image", image.string() + "\n");
  }
  uint64_t memory_of(const std::string& name) {
    auto found = templates_.find_template(name);
    EXPECT_TRUE(found.ok() && found->has_value());
    return (*found)->manifest.defaults.memory_bytes;
  }

  TestDirectory directory_;
  Templates templates_;
};

TEST_F(TemplatesTest, FindsManifestAndImage) {
  add("python", "64MiB", sha256("image"));
  auto found = templates_.find_template("python");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->manifest.name, "python");
  EXPECT_EQ((*found)->image, sha256("image"));
  EXPECT_EQ(memory_of("python"), 64u << 20);
}

TEST_F(TemplatesTest, UnknownAndImpossibleNamesAreNotFound) {
  for (std::string_view name : {"python", "", "..", ".", "../etc", "a/b", "Python", "-a"}) {
    auto found = templates_.find_template(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_FALSE(found->has_value()) << name;
  }
  EXPECT_FALSE(is_template_name(std::string(64, 'a')));
  EXPECT_TRUE(is_template_name(std::string(63, 'a')));
}

TEST_F(TemplatesTest, ReadsAgainWhenAFileChanged) {
  add("python", "64MiB", sha256("one"));
  EXPECT_EQ(memory_of("python"), 64u << 20);
  add("python", "32MiB", sha256("one"));
  EXPECT_EQ(memory_of("python"), 32u << 20);
  write("python", "image", sha256("two").string());
  EXPECT_EQ((*templates_.find_template("python"))->image, sha256("two"));
}

TEST_F(TemplatesTest, RemovedTemplateIsGoneAndABrokenOneIsAnError) {
  add("python", "64MiB", sha256("one"));
  EXPECT_EQ(memory_of("python"), 64u << 20);
  write("python", "template.toml", "name = 5");
  auto broken = templates_.find_template("python");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message().find("python/template.toml:1: name: must be a string"),
            std::string::npos)
      << broken.error().message();
  std::filesystem::remove_all(directory_ / "python");
  EXPECT_FALSE(templates_.find_template("python")->has_value());
}

TEST_F(TemplatesTest, FolderWithoutImageOrWithAnotherNameIsUnusable) {
  write("python", "template.toml", "name = \"python\"\n[image]\noci = \"x\"\n");
  EXPECT_EQ(templates_.find_template("python").error().code(), Code::kUnavailable);
  write("python", "image", "not a digest");
  EXPECT_EQ(templates_.find_template("python").error().code(), Code::kCorrupt);
  write("other", "template.toml", "name = \"python\"\n[image]\noci = \"x\"\n");
  write("other", "image", sha256("x").string());
  EXPECT_EQ(templates_.find_template("other").error().code(), Code::kInvalid);
}

TEST_F(TemplatesTest, LinkInPlaceOfAFileIsRefused) {
  add("python", "64MiB", sha256("one"));
  ASSERT_EQ(rename((directory_ / "python/image").c_str(), (directory_ / "real").c_str()), 0);
  ASSERT_EQ(symlink("../real", (directory_ / "python/image").c_str()), 0);
  EXPECT_FALSE(templates_.find_template("python").ok());
}

TEST_F(TemplatesTest, ListNamesFoldersInOrder) {
  add("python", "64MiB", sha256("one"));
  add("bash", "64MiB", sha256("one"));
  ASSERT_TRUE(make_directory(directory_ / ".new-node", 0755).ok());
  ASSERT_TRUE(replace_file(directory_ / "readme", "x", 0644).ok());
  EXPECT_EQ(templates_.list().value(), (std::vector<std::string>{"bash", "python"}));
  EXPECT_EQ(templates_.list().value(), (std::vector<std::string>{"bash", "python"}));
}

TEST(Templates, MissingDirectoryIsAnError) {
  EXPECT_EQ(Templates::open("/nonexistent/templates").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace atl::store
