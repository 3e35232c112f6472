#include "builder/apt_sources.h"

#include <gtest/gtest.h>

namespace atl::builder {
namespace {

using Lines = std::vector<std::string>;

TEST(AptSources, ReadsStanzas) {
  const char* text =
      "Types: deb deb-src\nURIs: http://a.example/debian\nSuites: bookworm\n bookworm-updates\n"
      "Components: main contrib\nSigned-By: /usr/share/keyrings/k.gpg\n\n"
      "Types: deb\nURIs: http://b.example\nSuites: bookworm-security trixie\nComponents: main\n\n"
      "Types: deb\nEnabled: no\nURIs: http://c.example\nSuites: bookworm\nComponents: main\n";
  EXPECT_EQ(
      deb822_entries(text, "bookworm"),
      (Lines{"deb [signed-by=/usr/share/keyrings/k.gpg] http://a.example/debian bookworm main",
             "deb [signed-by=/usr/share/keyrings/k.gpg] http://a.example/debian "
             "bookworm-updates main",
             "deb http://b.example bookworm-security main"}));
}

TEST(AptSources, ReadsLines) {
  const char* text =
      "# deb http://no.example bookworm main\n"
      "deb [arch=amd64 trusted=yes] http://a.example bookworm main non-free # comment\n"
      "deb http://b.example trixie main\ndeb-src http://c.example bookworm main\n"
      "deb http://d.example bookworm contrib\n";
  EXPECT_EQ(one_line_entries(text, "bookworm"),
            (Lines{"deb [arch=amd64 trusted=yes] http://a.example bookworm main"}));
}

TEST(AptSources, KeepsOnlyHowMirrorsAreReached) {
  const char* dump =
      "APT::Sandbox::User \"root\";\nAcquire::http::Proxy \"http://p.example:3128\";\n"
      "Acquire::https::Verify-Peer \"\";\nDPkg::Post-Invoke:: \"rm -rf /\";\n"
      "Acquire::Retries \"3\";\n";
  EXPECT_EQ(reach_options(dump),
            (Lines{"Acquire::http::Proxy \"http://p.example:3128\";", "Acquire::Retries \"3\";"}));
}

}  // namespace
}  // namespace atl::builder
