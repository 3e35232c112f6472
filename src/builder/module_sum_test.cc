#include "builder/module_sum.h"

#include "builder/go_build.h"
#include "builder/test_archive_test.h"

namespace atl::builder {
namespace {

std::string sum_of(const std::vector<TestEntry>& entries) {
  Fd file = make_zip(entries);
  UnpackBudget budget;
  auto zip = ArchiveFile::open_zip(file.get(), budget);
  if (!zip) return "error: " + zip.error().message();
  auto sum = sum_of_module(*zip);
  return sum ? *sum : "error: " + sum.error().message();
}

TestEntry file(const std::string& path, const std::string& content) {
  return {.path = "example.org/m@v1.0.0/" + path, .content = content};
}

// As golang.org/x/mod/sumdb/dirhash has it.
TEST(ModuleSum, IsThatOfGoWhateverTheOrderInTheZip) {
  constexpr const char* kSum = "h1:tKY2+4qYawzmOdicYN7uzN13xg2kfG9+1i1sgjZMSLA=";
  TestEntry mod = file("go.mod", "module example.org/m\n");
  TestEntry code = file("a/b.go", "package a\n");
  TestEntry empty = file("Z.go", "");
  EXPECT_EQ(sum_of({mod, code, empty}), kSum);
  EXPECT_EQ(sum_of({empty, mod, code}), kSum);
  EXPECT_NE(sum_of({mod, code}), kSum);
  EXPECT_NE(sum_of({mod, file("a/b.go", "package b\n"), empty}), kSum);
  EXPECT_NE(sum_of({mod, file("a/c.go", "package a\n"), empty}), kSum);
}

TEST(ModuleSum, RefusesWhatNoModuleHas) {
  TestEntry code = file("a.go", "package a\n");
  EXPECT_EQ(sum_of({code, file("a.go", "package b\n")}),
            "error: example.org/m@v1.0.0/a.go is in the Go module twice");
  TestEntry link = {.path = "m/link", .type = AE_IFLNK, .link = "/etc"};
  EXPECT_EQ(sum_of({link}), "error: m/link is no plain file of a Go module");
  EXPECT_EQ(sum_of({file("a\nb", "")}).substr(0, 6), "error:");
}

TEST(ModuleSum, AZipThatIsNoneIsRefused) {
  Fd file = make_archive({{.path = "a", .content = "b"}});
  UnpackBudget budget;
  auto zip = ArchiveFile::open_zip(file.get(), budget);
  EXPECT_TRUE(!zip || !sum_of_module(*zip));
}

TEST(GoBuild, OnlyServersOfTheListAreAsked) {
  using List = std::vector<std::string>;
  EXPECT_EQ(servers_of_goproxy("https://a.example/x/,direct"), List{"https://a.example/x"});
  EXPECT_EQ(servers_of_goproxy("http://a|https://b, off"), (List{"http://a", "https://b"}));
  EXPECT_EQ(servers_of_goproxy("off"), List{});
  EXPECT_EQ(servers_of_goproxy("file:///etc"), List{});
}

TEST(GoBuild, CapitalLettersAreEscapedAsTheProtocolWants) {
  EXPECT_EQ(escape_module("github.com/BurntSushi/toml"), "github.com/!burnt!sushi/toml");
  EXPECT_EQ(escape_module("v0.0.1-go1.26.11.linux-amd64"), "v0.0.1-go1.26.11.linux-amd64");
}

}  // namespace
}  // namespace atl::builder
