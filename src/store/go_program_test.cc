#include "store/go_program.h"

#include <map>

#include <gtest/gtest.h>

#include "store/template_manifest.h"

namespace atl::store {
namespace {

using Pairs = std::map<std::string, std::string>;

Pairs all_keys() {
  return {{"module", "example.org/Tools/m"},
          {"version", "v0.0.0-20260905035102-160fafc42237"},
          {"sum", "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44="},
          {"package", "cmd/tool"},
          {"to", "/usr/bin/tool"},
          {"stamp", "example.org/Tools/m/version.version"},
          {"toolchain", "1.26.11"},
          {"toolchain_sum", "h1:KyINmJ/FQdKRmDYGuTAAXkumyeR2DyUlSNHZj7XaLFg="},
          {"otherwise", "other"}};
}

Result<TemplateManifest> parse(const Pairs& keys, const std::string& source = "",
                               const std::string& more = "") {
  std::string text = "name = \"a\"\n[image]\n" + source + "[image.go]\n";
  for (const auto& [key, value] : keys) text += key + " = \"" + value + "\"\n";
  return parse_template_manifest(text + more, "template.toml");
}

std::string refusal(const std::string& key, const std::string& value) {
  Pairs keys = all_keys();
  keys[key] = value;
  auto manifest = parse(keys);
  return manifest ? "accepted" : manifest.error().message();
}

TEST(GoProgram, IsWholeAndAloneASource) {
  auto manifest = parse(all_keys());
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  EXPECT_TRUE(std::holds_alternative<EmptySource>(manifest->image));
  ASSERT_TRUE(manifest->go);
  EXPECT_EQ(manifest->go->module, "example.org/Tools/m");
  EXPECT_EQ(manifest->go->package, "cmd/tool");
  EXPECT_EQ(manifest->go->to, "/usr/bin/tool");
  EXPECT_EQ(manifest->go->toolchain, "1.26.11");
  EXPECT_EQ(manifest->go->otherwise, "other");
}

TEST(GoProgram, FilesOfTheModuleMayBeLeftOut) {
  auto manifest = parse(all_keys(), "", "without = [\"a/b.go\", \"c.go\"]\n");
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  EXPECT_EQ(manifest->go->without, (std::vector<std::string>{"a/b.go", "c.go"}));
}

TEST(GoProgram, TextOfTheModuleMayBeChanged) {
  std::string one = "[[image.go.change]]\nfile = \"a/b.go\"\nfrom = \"x\"\ninto = \"\"\n";
  auto manifest = parse(all_keys(), "", one);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  ASSERT_EQ(manifest->go->changes.size(), 1u);
  EXPECT_EQ(manifest->go->changes[0].file, "a/b.go");
  EXPECT_EQ(manifest->go->changes[0].from, "x");
  EXPECT_EQ(manifest->go->changes[0].into, "");
  std::string many;
  for (int i = 0; i < 17; ++i) many += one;
  EXPECT_FALSE(parse(all_keys(), "", many).ok());
  std::string long_text(5000, 'a');
  for (const std::string& bad :
       {std::string("file = \"../b.go\"\nfrom = \"x\"\ninto = \"y\"\n"),
        std::string("file = \"b.go\"\nfrom = \"\"\ninto = \"y\"\n"),
        std::string("file = \"b.go\"\nfrom = \"x\"\n"),
        std::string("file = \"b.go\"\nfrom = \"x\"\ninto = \"y\"\nmore = 1\n"),
        "file = \"b.go\"\nfrom = \"x\"\ninto = \"" + long_text + "\"\n"})
    EXPECT_FALSE(parse(all_keys(), "", "[[image.go.change]]\n" + bad).ok()) << bad;
}

TEST(GoProgram, MayBeAddedToASourceButNotToATemplate) {
  auto added = parse(all_keys(), "oci = \"x\"\n");
  ASSERT_TRUE(added.ok()) << added.error().message();
  EXPECT_TRUE(std::holds_alternative<OciSource>(added->image));
  EXPECT_TRUE(added->go);
  EXPECT_FALSE(parse(all_keys(), "template = \"base\"\n").ok());
}

TEST(GoProgram, WhatPinsItCannotBeLeftOut) {
  for (const char* key : {"module", "version", "sum", "to", "toolchain", "toolchain_sum"}) {
    Pairs keys = all_keys();
    keys.erase(key);
    auto manifest = parse(keys);
    ASSERT_FALSE(manifest.ok()) << key;
    EXPECT_NE(manifest.error().message().find(std::string("image.go.") + key), std::string::npos);
  }
  for (const char* key : {"package", "stamp", "otherwise"}) {
    Pairs keys = all_keys();
    keys.erase(key);
    EXPECT_TRUE(parse(keys).ok()) << key;
  }
}

TEST(GoProgram, ValuesCannotBeOptionsOrEscape) {
  for (const char* module : {"", "m", "-x.org/m", "x.org/../m", "x.org//m", "/x.org", "x.org/",
                             "x.org/-m", "x.org/m@v1", "x.org/m n", "https://x.org"})
    EXPECT_NE(refusal("module", module), "accepted") << module;
  for (const char* version : {"", "v", "1.2.3", "latest", "v1", "v1.2", "v1.2.3/..", "v1.2.3 x"})
    EXPECT_NE(refusal("version", version), "accepted") << version;
  for (const char* key : {"sum", "toolchain_sum"})
    for (const char* sum : {"", "h1:", "h2:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44=",
                            "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg4==",
                            "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg444"})
      EXPECT_NE(refusal(key, sum), "accepted") << key << " " << sum;
  for (const char* package : {"", ".", "../x", "/x", "-x", "x/..", "a b"})
    EXPECT_NE(refusal("package", package), "accepted") << package;
  for (const char* to : {"", "usr/bin/x", "/", "/usr/../x", "/usr//x", "/usr/bin/"})
    EXPECT_NE(refusal("to", to), "accepted") << to;
  for (const char* release : {"", "1", "1.26", "1.26rc1", "1.26.", "go1.26.1", "1..1"})
    EXPECT_NE(refusal("toolchain", release), "accepted") << release;
  EXPECT_NE(refusal("without", "a.go"), "accepted") << "is a list";
  EXPECT_FALSE(parse(all_keys(), "", "without = [\"../a.go\"]\n").ok());
  EXPECT_NE(refusal("stamp", "x.org/m.v=1 -X y"), "accepted");
  EXPECT_NE(refusal("otherwise", "--all"), "accepted");
}

}  // namespace
}  // namespace atl::store
