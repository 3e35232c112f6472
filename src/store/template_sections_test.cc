#include "store/template_sections.h"

#include <gtest/gtest.h>

namespace atl::store {
namespace {

TemplateManifest parse_or_die(const std::string& text) {
  auto manifest = parse_template_manifest(text, "template.toml");
  if (!manifest) ADD_FAILURE() << manifest.error().message() << "\n" << text;
  return manifest.ok() ? *manifest : TemplateManifest{};
}

std::string error_of(const std::string& text) {
  auto manifest = parse_template_manifest(text, "template.toml");
  return manifest ? "accepted" : manifest.error().message();
}

const std::string kGrown = "name = \"a\"\n[image]\ntemplate = \"base\"\n";
const std::string kBase = R"toml(
name = "base"
[image]
debian = { suite = "bookworm" }
[[run]]
language = "python"
file = "main.py"
inline = ["python3", "-c", "{code}"]
command = ["python3", "{file}"]
[[run]]
language = "c"
file = "main.c"
compile = ["cc", "{files}"]
command = ["./a.out"]
[context]
language = "python"
preload = ["numpy"]
[defaults]
isolation = "gvisor"
latency = "any"
persistence = "persistent"
ttl = "7m"
cpu = 1.25
memory = "1GiB"
disk_rate = "8MiB"
cpu_time = "3s"
pids = 99
user = "root"
cwd = "/srv"
env = { A = "1", B = "two \"words\" \u00e9 \\ \n" }
[start]
command = "serve 'x' \"y\""
ready = "ask"
[network]
allow = ["pypi.org"]
[outputs]
collect = ["/tmp/outputs/**"]
mode = "rich"
)toml";

TEST(TemplateSections, AreTakenFromTheTemplateThatItGrowsFrom) {
  TemplateManifest base = parse_or_die(kBase);
  TemplateManifest own = parse_or_die(kGrown);
  TemplateManifest both = parse_or_die(kGrown + inherited_text(own, base));
  EXPECT_EQ(std::get<TemplateSource>(both.image).reference, "base");
  ASSERT_TRUE(both.start);
  EXPECT_EQ(both.start->command, "serve 'x' \"y\"");
  EXPECT_EQ(both.start->ready, "ask");
  ASSERT_EQ(both.runs.size(), 2u);
  EXPECT_EQ(both.runs[0].inline_command, base.runs[0].inline_command);
  EXPECT_EQ(both.runs[1].compile, base.runs[1].compile);
  ASSERT_TRUE(both.context.has_value());
  EXPECT_EQ(both.context->preload, std::vector<std::string>{"numpy"});
  EXPECT_EQ(both.network_allow, base.network_allow);
  EXPECT_EQ(both.outputs_collect, base.outputs_collect);
  EXPECT_EQ(both.outputs_mode, OutputMode::kRich);
  const TemplateDefaults& defaults = both.defaults;
  EXPECT_EQ(defaults.isolation, Isolation::kGvisor);
  EXPECT_EQ(defaults.latency, Latency::kAny);
  EXPECT_EQ(defaults.persistence, Persistence::kPersistent);
  EXPECT_EQ(defaults.ttl_ms, 7u * 60'000);
  EXPECT_EQ(defaults.cpu_millis, 1250u);
  EXPECT_EQ(defaults.memory_bytes, 1ull << 30);
  EXPECT_EQ(defaults.disk_bytes_per_second, 8ull << 20);
  EXPECT_EQ(defaults.cpu_time_ms, 3000u);
  EXPECT_EQ(defaults.pids, 99u);
  EXPECT_EQ(defaults.user, "root");
  EXPECT_EQ(defaults.directory, "/srv");
  EXPECT_EQ(defaults.environment, base.defaults.environment);
  EXPECT_EQ(defaults.environment[1].second, "two \"words\" \u00e9 \\ \n");
  EXPECT_EQ(both.pool_warm, 0u);
}

TEST(TemplateSections, WhatItSaysItselfStands) {
  TemplateManifest base = parse_or_die(kBase);
  std::string text = kGrown +
                     "[network]\nallow = []\n[outputs]\n[defaults]\npids = 20\n"
                     "[context]\nlanguage = \"bash\"\n[[run]]\nlanguage = \"bash\"\n"
                     "file = \"a.sh\"\ncommand = [\"sh\", \"{file}\"]\n";
  TemplateManifest own = parse_or_die(text);
  TemplateManifest both = parse_or_die(text + inherited_text(own, base));
  EXPECT_TRUE(both.network_allow.empty());
  EXPECT_TRUE(both.outputs_collect.empty());
  EXPECT_EQ(both.defaults.pids, 20u);
  EXPECT_EQ(both.defaults.user, "user");
  EXPECT_EQ(both.context->language, "bash");
  EXPECT_EQ(both.runs.size(), 1u);
}

TEST(TemplateSections, OfWhoRunsWhatAreReadStrictly) {
  auto with = [](const std::string& line) { return error_of(kGrown + "[defaults]\n" + line); };
  EXPECT_EQ(with("user = \"root\"\ncwd = \"/a b\"\nenv = { A_1 = \"\" }\n"), "accepted");
  EXPECT_EQ(with("user = \"a b\"\n"), "template.toml:5: defaults.user: is not the name of a user");
  EXPECT_EQ(with("cwd = \"a\"\n"), "template.toml:5: defaults.cwd: must be an absolute path");
  EXPECT_NE(with("env = { 1A = \"\" }\n").find("defaults.env: has a name"), std::string::npos);
  EXPECT_NE(with("env = { A = 1 }\n").find("every value must be a string"), std::string::npos);
  EXPECT_NE(with("env = [\"A\"]\n").find("must be a table"), std::string::npos);
}

TEST(TemplateSections, OnlySomeThingsGrowFromAnotherTemplate) {
  std::string top = "name = \"a\"\n[image]\n";
  EXPECT_EQ(error_of(top + "template = \"base@sha256:" + std::string(64, 'a') + "\"\n"),
            "accepted");
  for (const char* name : {"Base", "", "a/b", "base@sha256:1", "base:tag"})
    EXPECT_NE(error_of(top + "template = \"" + name + "\"\n").find("is not the name"),
              std::string::npos)
        << name;
  EXPECT_NE(error_of(kGrown + "remove = [\"/usr\"]\n").find("use setup"), std::string::npos);
  EXPECT_NE(error_of(kGrown + "oci = \"a\"\n").find("exactly one"), std::string::npos);
  EXPECT_NE(error_of("kind = \"toolbox\"\n" + kGrown).find("toolbox"), std::string::npos);
}

}  // namespace
}  // namespace atl::store
