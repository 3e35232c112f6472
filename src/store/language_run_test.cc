#include "store/language_run.h"

#include <gtest/gtest.h>

namespace atl::store {
namespace {

using Words = std::vector<std::string>;

TEST(LanguageRun, CodeTakesThePlaceOfItsWordAlone) {
  EXPECT_EQ(words_with_code({"bash", "-c", "{code}", "main.sh"}, "echo {code} $1; \"'"),
            (Words{"bash", "-c", "echo {code} $1; \"'", "main.sh"}));
  EXPECT_EQ(words_with_code({"x{code}"}, "1"), Words{"x{code}"});
}

TEST(LanguageRun, FilesAreThoseOfTheSameKind) {
  RunPaths paths{.entry = "/home/user/main.cpp",
                 .others = {"/home/user/b.h", "/home/user/b.cpp", "/home/user/main.cpp", "/x/c"}};
  EXPECT_EQ(words_with_paths({"g++", "{files}", "-lm"}, paths),
            (Words{"g++", "/home/user/main.cpp", "/home/user/b.cpp", "-lm"}));
  EXPECT_EQ(words_with_paths({"python3", "{file}", "-{file}"}, paths),
            (Words{"python3", "/home/user/main.cpp", "-{file}"}));
}

TEST(LanguageRun, TheExtensionIsThatOfTheName) {
  EXPECT_EQ(extension_of("/a.b/main.tar.gz"), ".gz");
  EXPECT_EQ(extension_of("/a.b/main"), "");
  EXPECT_EQ(extension_of("/a/.profile"), "");
}

}  // namespace
}  // namespace atl::store
