#include "cli/template_commands.h"

#include <sys/stat.h>

#include <filesystem>

#include "cli/fixture_test.h"

namespace atl::cli {
namespace {

// sha256 of "one" and of "two"
constexpr const char* kOne = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
constexpr const char* kTwo = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";

class Template : public testing::Test {
 protected:
  Template() : places_(Places::beneath(dir_ / "state")) {
    for (const auto& path : {built_, places_.images(), places_.templates()})
      std::filesystem::create_directories(path);
    build("name = \"python\"\n", "one", kOne);
  }
  void build(const char* manifest, const char* image, const char* digest) {
    write_text(built_ + "/template.toml", manifest);
    write_text(built_ + "/image.erofs", image);
    write_text(built_ + "/digest", std::string(digest) + "\n");
  }
  // What lies in the state directory, sorted.
  std::vector<std::string> state() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(places_.state))
      if (entry.is_regular_file() && entry.path().filename() != ".lock")
        names.push_back(std::filesystem::relative(entry.path(), places_.state).string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDir dir_;
  std::string built_ = dir_ / "built";
  Places places_;
};

TEST_F(Template, IsInstalledWithItsImage) {
  ASSERT_TRUE(install_template(places_, built_).ok());
  std::string image = std::string("images/") + kOne + ".erofs";
  EXPECT_EQ(state(), (std::vector<std::string>{image, "templates/python/image",
                                               "templates/python/template.toml"}));
  EXPECT_EQ(read_text(places_.templates() + "/python/image"), std::string(kOne) + "\n");
  struct stat status;
  ASSERT_EQ(stat((places_.state + "/" + image).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644u);
}

TEST_F(Template, IsReplacedByANewerOneAndKeepsTheOldImageForLiveSandboxes) {
  ASSERT_TRUE(install_template(places_, built_).ok());
  build("name = \"python\"\ndescription = \"newer\"\n", "two", kTwo);
  ASSERT_TRUE(install_template(places_, built_).ok());
  EXPECT_EQ(read_text(places_.templates() + "/python/image"), std::string(kTwo) + "\n");
  EXPECT_EQ(state().size(), 4u);
}

TEST_F(Template, WhoseImageIsNotTheOneItNamesChangesNothing) {
  build("name = \"python\"\n", "tampered", kOne);
  EXPECT_EQ(install_template(places_, built_).error().code(), Code::kCorrupt);
  EXPECT_TRUE(state().empty());
}

TEST_F(Template, RepairsAnInstalledImageThatWasDamaged) {
  ASSERT_TRUE(install_template(places_, built_).ok());
  std::string image = places_.images() + "/" + kOne + ".erofs";
  write_text(image, "damaged");
  ASSERT_TRUE(install_template(places_, built_).ok());
  EXPECT_EQ(read_text(image), "one");
}

TEST_F(Template, NeedsANameThatCanStandInAPath) {
  for (const char* manifest : {"", "name = 1", "name = \"../x\"", "name = \"-x\"", "name = \"X\"",
                               "name = \"\"", "name ="}) {
    build(manifest, "one", kOne);
    EXPECT_EQ(install_template(places_, built_).error().code(), Code::kInvalid) << manifest;
  }
  EXPECT_TRUE(state().empty());
}

}  // namespace
}  // namespace atl::cli
