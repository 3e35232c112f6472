#include "store/template_manifest.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace atl::store {
namespace {

constexpr std::string_view kMinimal =
    "name = \"python\"\n"
    "[image]\n"
    "debian = { suite = \"bookworm\", packages = [\"python3\"] }\n";

// design.md 7.5.
constexpr std::string_view kExample = R"toml(
name = "python-data-analysis"          # versioned: name@digest; aliases allowed
description = "Python 3.11 with NumPy, pandas and Matplotlib"
[image]                                # exactly one source
debian = { suite = "bookworm", packages = ["python3", "python3-pandas", "python3-matplotlib"] }
# oci = "docker.io/library/python:3.11-slim"  oci_archive = "image.tar"  rootfs_tar = "root.tar"
setup = ["..."]                        # commands run in a sandbox with build network, once
[context]
language = "python"
preload = ["numpy", "pandas", "matplotlib.pyplot"]
[defaults]
isolation = "jail"                     # the floor
persistence = "ephemeral"
ttl = "5m"
idle_ttl = "2m"
cpu = 1.0
memory = "512MiB"
disk = "1GiB"
pids = 256
output = "64MiB"
[network]
allow = []                             # default deny
[outputs]
collect = ["/tmp/outputs/**"]          # mode = "text" | "rich"
[pool]
warm = 4
singleton = false                      # true: one long-lived sandbox per tenant
)toml";

TemplateManifest parse_or_die(std::string_view text) {
  auto manifest = parse_template_manifest(text, "template.toml");
  if (!manifest) ADD_FAILURE() << manifest.error().message();
  return manifest.ok() ? *manifest : TemplateManifest{};
}

std::string error_of(std::string_view text) {
  auto manifest = parse_template_manifest(text, "template.toml");
  if (manifest) return "accepted";
  EXPECT_EQ(manifest.error().code(), Code::kInvalid);
  return manifest.error().message();
}

// The minimal manifest with more lines after it; the first of them is line 4.
std::string error_with(std::string_view more) {
  return error_of(std::string(kMinimal) + std::string(more));
}

TEST(TemplateManifest, AcceptsTheExampleOfTheDesign) {
  TemplateManifest manifest = parse_or_die(kExample);
  EXPECT_EQ(manifest.name, "python-data-analysis");
  EXPECT_EQ(manifest.description, "Python 3.11 with NumPy, pandas and Matplotlib");
  auto* debian = std::get_if<DebianSource>(&manifest.image);
  ASSERT_NE(debian, nullptr);
  EXPECT_EQ(debian->suite, "bookworm");
  EXPECT_EQ(debian->packages,
            (std::vector<std::string>{"python3", "python3-pandas", "python3-matplotlib"}));
  EXPECT_EQ(manifest.setup, std::vector<std::string>{"..."});
  ASSERT_TRUE(manifest.context.has_value());
  EXPECT_EQ(manifest.context->language, "python");
  EXPECT_EQ(manifest.context->preload.size(), 3u);
  EXPECT_EQ(manifest.defaults.isolation, Isolation::kJail);
  EXPECT_EQ(manifest.defaults.latency, Latency::kInstant);
  EXPECT_EQ(manifest.defaults.persistence, Persistence::kEphemeral);
  EXPECT_EQ(manifest.defaults.ttl_ms, 300'000u);
  EXPECT_EQ(manifest.defaults.idle_ttl_ms, 120'000u);
  EXPECT_EQ(manifest.defaults.cpu_millis, 1000u);
  EXPECT_EQ(manifest.defaults.memory_bytes, 512ull << 20);
  EXPECT_EQ(manifest.defaults.disk_bytes, 1ull << 30);
  EXPECT_EQ(manifest.defaults.pids, 256u);
  EXPECT_EQ(manifest.defaults.output_bytes, 64ull << 20);
  EXPECT_TRUE(manifest.network_allow.empty());
  EXPECT_EQ(manifest.outputs_collect, std::vector<std::string>{"/tmp/outputs/**"});
  EXPECT_EQ(manifest.outputs_mode, OutputMode::kText);
  EXPECT_EQ(manifest.pool_warm, 4u);
  EXPECT_EQ(manifest.pool_max, 128u);
  EXPECT_FALSE(manifest.pool_singleton);
}

// "v0.0.0-20260905035102-…" and "… 2026-09-05 …".
bool names_day_of_version(const TemplateManifest& manifest) {
  const std::string& version = manifest.go->version;
  size_t day = version.find('-') + 1;
  std::string written =
      version.substr(day, 4) + "-" + version.substr(day + 4, 2) + "-" + version.substr(day + 6, 2);
  return manifest.description.find(written) != std::string::npos;
}

TEST(TemplateManifest, AcceptsThoseThatComeWithAtoll) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATOLL_TEMPLATES)) {
    if (!entry.is_directory()) continue;
    std::string path = entry.path().string() + "/template.toml";
    auto text = read_file(path);
    ASSERT_TRUE(text.ok()) << path;
    auto manifest = parse_template_manifest(*text, path);
    ASSERT_TRUE(manifest.ok()) << manifest.error().message();
    EXPECT_EQ(manifest->name, entry.path().filename().string());
    EXPECT_EQ(manifest->runs.empty(), manifest->kind != TemplateKind::kRoot) << path;
    // `atoll doctor` shows the description, so it must name the day that the version does.
    EXPECT_TRUE(!manifest->go || names_day_of_version(*manifest)) << path;
    ++count;
  }
  EXPECT_GT(count, 0u);
}

TEST(TemplateManifest, WhatIsLeftOutHasItsDefault) {
  TemplateManifest manifest = parse_or_die(kMinimal);
  EXPECT_FALSE(manifest.context.has_value());
  EXPECT_EQ(manifest.defaults.memory_bytes, 512ull << 20);
  EXPECT_EQ(manifest.defaults.cpu_millis, 1000u);
  EXPECT_EQ(manifest.defaults.open_files, 1024u);
  EXPECT_EQ(manifest.defaults.disk_bytes_per_second, 0u);
  EXPECT_EQ(manifest.defaults.cpu_time_ms, 0u);
  EXPECT_EQ(manifest.defaults.idle_ttl_ms, 0u);
  EXPECT_TRUE(manifest.network_allow.empty());
  EXPECT_EQ(manifest.pool_warm, 0u);
}

TEST(TemplateManifest, EachSourceAndChoiceIsRead) {
  auto oci = parse_or_die("name = \"a\"\n[image]\noci = \"docker.io/library/python:3.11-slim\"\n");
  EXPECT_EQ(std::get<OciSource>(oci.image).reference, "docker.io/library/python:3.11-slim");
  auto archive = parse_or_die("name = \"a\"\n[image]\noci_archive = \"image.tar\"\n");
  EXPECT_EQ(std::get<OciArchiveSource>(archive.image).path, "image.tar");
  auto layout = parse_or_die("name = \"a\"\naliases = [\"b\"]\n[image]\noci_layout = \"d\"\n");
  EXPECT_EQ(std::get<OciLayoutSource>(layout.image).path, "d");
  EXPECT_EQ(layout.aliases, std::vector<std::string>{"b"});
  auto grown = parse_or_die("name = \"a\"\n[image]\ntemplate = \"base\"\n");
  EXPECT_EQ(std::get<TemplateSource>(grown.image).reference, "base");
  auto tar = parse_or_die("name = \"a\"\n[image]\nrootfs_tar = \"x/root.tar.zst\"\n");
  EXPECT_EQ(std::get<RootfsTarSource>(tar.image).path, "x/root.tar.zst");

  auto other =
      parse_or_die(std::string(kMinimal) +
                   "[defaults]\nisolation = \"microvm\"\npersistence = \"checkpoint\"\n"
                   "cpu = 0.01\nopen_files = 4096\ndisk_rate = \"8MiB\"\ncpu_time = \"90s\"\n"
                   "[outputs]\nmode = \"rich\"\n[pool]\nsingleton = true\n"
                   "[network]\nallow = [\"*.pypi.org\", \"example.com:443\", \"10.0.0.0/8\"]\n"
                   "upstream = { proxy = \"proxy.example:3128\", credentials = \"LOGIN\" }\n");
  EXPECT_EQ(other.upstream_proxy, "proxy.example:3128");
  EXPECT_EQ(other.upstream_credentials, "LOGIN");
  EXPECT_EQ(other.defaults.isolation, Isolation::kMicrovm);
  EXPECT_EQ(other.defaults.latency, Latency::kAny) << "what the floor takes";
  EXPECT_EQ(other.defaults.persistence, Persistence::kCheckpoint);
  EXPECT_EQ(other.defaults.cpu_millis, 10u);
  EXPECT_EQ(other.defaults.open_files, 4096u);
  EXPECT_EQ(other.defaults.disk_bytes_per_second, 8ull << 20);
  EXPECT_EQ(other.defaults.cpu_time_ms, 90'000u);
  EXPECT_EQ(other.outputs_mode, OutputMode::kRich);
  EXPECT_TRUE(other.pool_singleton);
  EXPECT_EQ(other.network_allow.size(), 3u);
  EXPECT_EQ(parse_or_die(std::string(kMinimal) + "[defaults]\ncpu = 2\n").defaults.cpu_millis,
            2000u);
}

constexpr std::string_view kIntegrity =
    "sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ="
    "=";

std::string with_npm(std::string_view name, std::string_view version, std::string_view integrity) {
  return std::string(kMinimal) + "npm = [{ name = \"" + std::string(name) + "\", version = \"" +
         std::string(version) + "\", integrity = \"" + std::string(integrity) + "\" }]\n";
}

TEST(TemplateManifest, NpmPackagesAndFilesArePinnedAndPlain) {
  auto manifest =
      parse_or_die(with_npm("@scope/node-x64", "20.20.2", kIntegrity) + "files = \"files\"\n");
  ASSERT_EQ(manifest.npm.size(), 1u);
  EXPECT_EQ(manifest.npm[0].name, "@scope/node-x64");
  EXPECT_EQ(manifest.npm[0].version, "20.20.2");
  EXPECT_EQ(manifest.npm[0].integrity, kIntegrity);
  EXPECT_EQ(manifest.files, "files");
  for (std::string_view name : {"", "a/b", "@a", "@/a", "@a/b/c", "../a", "A", "-a"})
    EXPECT_NE(error_of(with_npm(name, "1.2.3", kIntegrity)), "accepted") << name;
  for (std::string_view version : {"", "1", "1.2", "^1.2.3", "1.2.3-rc", "1..2", "1.2.", "latest"})
    EXPECT_NE(error_of(with_npm("a", version, kIntegrity)), "accepted") << version;
  for (std::string_view integrity : {"", "sha512-", "sha1-x", "sha512-a=="})
    EXPECT_NE(error_of(with_npm("a", "1.2.3", integrity)), "accepted") << integrity;
  EXPECT_NE(error_with("npm = [\"a\"]\n").find("every entry must be a table"), std::string::npos);
  EXPECT_NE(error_with("npm = [{ name = \"a\", version = \"1.2.3\" }]\n").find("integrity"),
            std::string::npos);
  for (std::string_view path : {"", "usr", "../x", "/..", "/usr/../../x"})
    EXPECT_NE(error_with("remove = [\"" + std::string(path) + "\"]\n"), "accepted") << path;
  EXPECT_EQ(parse_or_die(std::string(kMinimal) + "remove = [\"/usr/include/*\"]\n").remove,
            std::vector<std::string>{"/usr/include/*"});
  for (std::string_view files : {"", "..", "../x", "/etc", "a/b", "-a"})
    EXPECT_NE(error_with("files = \"" + std::string(files) + "\"\n"), "accepted") << files;
}

TEST(TemplateManifest, AProgramIsStartedAndAskedWhetherItIsReady) {
  EXPECT_FALSE(parse_or_die(kMinimal).start);
  std::string start = std::string(kMinimal) + "[start]\ncommand = \"serve\"\n";
  auto plain = parse_or_die(start).start;
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->command, "serve");
  EXPECT_EQ(plain->ready, "");
  EXPECT_EQ(plain->ready_timeout_ms, 60'000u);
  auto whole = parse_or_die(start + "ready = \"ask\"\nready_timeout = \"2s\"\n").start;
  EXPECT_EQ(whole->ready, "ask");
  EXPECT_EQ(whole->ready_timeout_ms, 2'000u);
  for (const char* wrong :
       {"ready_timeout = \"11m\"\n", "ready_timeout = \"0s\"\n", "reddy = \"x\"\n"})
    EXPECT_NE(error_of(start + wrong), "accepted") << wrong;
  EXPECT_NE(error_of(std::string(kMinimal) + "[start]\nready = \"ask\"\n"), "accepted");
}

TEST(TemplateManifest, AToolboxSaysThatItIsOne) {
  EXPECT_EQ(parse_or_die(kMinimal).kind, TemplateKind::kRoot);
  EXPECT_EQ(parse_or_die("kind = \"toolbox\"\n" + std::string(kMinimal)).kind,
            TemplateKind::kToolbox);
  EXPECT_NE(error_of("kind = \"tools\"\n" + std::string(kMinimal))
                .find("\"tools\" is not one of \"root\", \"toolbox\""),
            std::string::npos);
}

TEST(TemplateManifest, LanguagesOfARunComeInTheirOrder) {
  auto manifest = parse_or_die(std::string(kMinimal) +
                               "[[run]]\nlanguage = \"cpp\"\nfile = \"main.cpp\"\n"
                               "compile = [\"g++\", \"-o\", \"/tmp/main\", \"{files}\"]\n"
                               "command = [\"/tmp/main\"]\n"
                               "[[run]]\nlanguage = \"python\"\nfile = \"main.py\"\n"
                               "inline = [\"python3\", \"-c\", \"{code}\"]\n"
                               "command = [\"python3\", \"{file}\"]\n");
  ASSERT_EQ(manifest.runs.size(), 2u);
  EXPECT_EQ(manifest.runs[0].language, "cpp");
  EXPECT_EQ(manifest.runs[0].compile.back(), "{files}");
  EXPECT_TRUE(manifest.runs[0].inline_command.empty());
  EXPECT_EQ(manifest.runs[1].file, "main.py");
  EXPECT_EQ(manifest.runs[1].inline_command.size(), 3u);
}

TEST(TemplateManifest, ALanguageSaysAllThatARunNeeds) {
  auto error_of_run = [](std::string_view lines) {
    return error_with("[[run]]\n" + std::string(lines));
  };
  const std::string named = "language = \"go\"\nfile = \"main.go\"\n";
  EXPECT_EQ(error_of_run(named + "command = [\"go\", \"{file}\"]\n"), "accepted");
  EXPECT_EQ(error_of_run(named + "command = [\"go\"]\ncomand = []\n"),
            "template.toml:8: unknown key \"comand\" in [run]; did you mean \"command\"?");
  for (std::string_view lines :
       {"", "command = []\n", "command = [\"\"]\n", "command = [\"{file}\"]\n",
        "command = [\"go\", \"{code}\"]\n", "command = [\"go\", \"{path}\"]\n",
        "command = [\"go\"]\ninline = [\"go\"]\n",
        "command = [\"go\"]\ninline = [\"go\", \"{code}\", \"{code}\"]\n",
        "command = [\"go\"]\ncompile = [\"go\"]\ninline = [\"go\", \"{code}\"]\n"})
    EXPECT_NE(error_of_run(named + std::string(lines)), "accepted") << lines;
  for (std::string_view file : {"", "../main.go", "a/b", "-x", ".x", "a b"})
    EXPECT_NE(error_of_run("language = \"go\"\nfile = \"" + std::string(file) +
                           "\"\ncommand = [\"go\"]\n"),
              "accepted")
        << file;
  EXPECT_NE(error_with("run = 1\n"), "accepted");
  const std::string twice = "[[run]]\n" + named + "command = [\"go\"]\n";
  EXPECT_NE(error_with(twice + twice).find("is there twice"), std::string::npos);
}

TEST(TemplateManifest, UnknownKeyNamesFileLineAndTheNearestKey) {
  EXPECT_EQ(error_with("[defaults]\nmemroy = \"1GiB\"\n"),
            "template.toml:5: unknown key \"memroy\" in [defaults]; did you mean \"memory\"?");
  EXPECT_EQ(error_with("[default]\n"),
            "template.toml:4: unknown key \"default\"; did you mean \"defaults\"?");
  EXPECT_EQ(
      error_of("name = \"a\"\n[image]\ndebian = { suite = \"bookworm\", package = [] }\n"),
      "template.toml:3: unknown key \"package\" in [image.debian]; did you mean \"packages\"?");
}

TEST(TemplateManifest, WrongTypeOrUnitNamesTheKey) {
  EXPECT_EQ(error_with("[defaults]\nmemory = 512\n"),
            "template.toml:5: defaults.memory: must be a size like \"512MiB\" (B, KiB, MiB, GiB or "
            "TiB)");
  EXPECT_NE(error_with("[defaults]\nmemory = \"512MB\"\n").find("must be a size"),
            std::string::npos);
  EXPECT_NE(error_with("[defaults]\nttl = \"5 minutes\"\n").find("must be a duration"),
            std::string::npos);
  EXPECT_NE(error_with("[defaults]\nttl = 300\n").find("must be a duration"), std::string::npos);
  EXPECT_NE(error_with("[defaults]\ncpu = \"1\"\n").find("must be a number"), std::string::npos);
  EXPECT_NE(error_with("[defaults]\npids = 10.5\n").find("whole number"), std::string::npos);
  EXPECT_NE(error_with("[pool]\nsingleton = 1\n").find("true or false"), std::string::npos);
  EXPECT_NE(error_with("[network]\nallow = \"a\"\n").find("list of strings"), std::string::npos);
  EXPECT_NE(error_with("[network.upstream]\nproxy = \"a.b\"\n").find("name:port"),
            std::string::npos);
  EXPECT_NE(error_with("[network.upstream]\n").find("proxy"), std::string::npos);
  EXPECT_NE(error_with("[network]\nallow = [1]\n").find("must be a string"), std::string::npos);
  EXPECT_NE(error_with("context = 1\n").find("context"), std::string::npos);
  EXPECT_NE(error_of("name = 1\n").find("name: must be a string"), std::string::npos);
  EXPECT_NE(error_of("name = \"a\"\nimage = \"x\"\n").find("image: must be a table"),
            std::string::npos);
}

TEST(TemplateManifest, LimitsAreBounded) {
  for (std::string_view line : {"cpu = 0.009",
                                "cpu = 1024.1",
                                "cpu = -1",
                                "cpu = nan",
                                "cpu = inf",
                                "memory = \"15MiB\"",
                                "memory = \"2TiB\"",
                                "disk = \"1B\"",
                                "disk = \"17TiB\"",
                                "pids = 7",
                                "pids = 65537",
                                "pids = -1",
                                "open_files = 15",
                                "open_files = 1048577",
                                "disk_rate = \"63KiB\"",
                                "disk_rate = \"2TiB\"",
                                "cpu_time = \"31d\"",
                                "output = \"0B\"",
                                "ttl = \"367d\"",
                                "isolation = \"docker\"",
                                "latency = \"slow\"",
                                "isolation = \"gvisor\"\nlatency = \"instant\"",
                                "isolation = \"microvm\"\nlatency = \"fast\"",
                                "persistence = \"forever\""})
    EXPECT_NE(error_with("[defaults]\n" + std::string(line) + "\n"), "accepted") << line;
  for (std::string_view line :
       {"cpu = 1024", "memory = \"16MiB\"", "memory = \"1TiB\"", "pids = 8", "pids = 65536",
        "ttl = \"0s\"", "latency = \"any\"", "isolation = \"gvisor\"\nlatency = \"fast\""})
    EXPECT_EQ(error_with("[defaults]\n" + std::string(line) + "\n"), "accepted") << line;
  EXPECT_NE(error_with("[pool]\nwarm = 10001\n"), "accepted");
  EXPECT_NE(error_with("[pool]\nwarm = 4\nmax = 3\n").find("less than pool.warm"),
            std::string::npos);
  EXPECT_EQ(error_with("[pool]\nwarm = 200\n"), "accepted");
}

TEST(TemplateManifest, ExactlyOneImageSource) {
  EXPECT_EQ(error_of("name = \"a\"\n[image]\nsetup = []\n"),
            "template.toml:2: [image] needs exactly one of debian, oci, oci_archive, "
            "oci_layout, rootfs_tar, template, or go alone");
  EXPECT_NE(
      error_of("name = \"a\"\n[image]\noci = \"x\"\nrootfs_tar = \"y\"\n").find("exactly one"),
      std::string::npos);
  EXPECT_NE(error_of("name = \"a\"\n").find("missing key \"image\""), std::string::npos);
  EXPECT_NE(error_of("[image]\noci = \"x\"\n").find("missing key \"name\""), std::string::npos);
  EXPECT_NE(
      error_of("name = \"a\"\n[image]\ndebian = { packages = [] }\n").find("image.debian.suite"),
      std::string::npos);
}

TEST(TemplateManifest, ValuesThatBecomeArgumentsCannotBeOptionsOrEscape) {
  for (std::string_view value : {"--hook=x", "a b", "Python3", "../x", "a;b", "", "x"})
    EXPECT_NE(error_of("name = \"a\"\n[image]\ndebian = { suite = \"bookworm\", packages = [\"" +
                       std::string(value) + "\"] }\n"),
              "accepted")
        << value;
  for (std::string_view value : {"--x", "/etc/passwd", "../a.tar", "a/../../b", "a/..", ""})
    EXPECT_NE(error_of("name = \"a\"\n[image]\nrootfs_tar = \"" + std::string(value) + "\"\n"),
              "accepted")
        << value;
  EXPECT_NE(error_of("name = \"a\"\n[image]\noci = \"-x\"\n"), "accepted");
  EXPECT_NE(error_with("[context]\nlanguage = \"python\"\npreload = [\"os; exit()\"]\n"),
            "accepted");
  for (std::string_view glob : {"relative/*", "/a/../b/*", "/a/[b"})
    EXPECT_NE(error_with("[outputs]\ncollect = [\"" + std::string(glob) + "\"]\n"), "accepted")
        << glob;
  std::string many = "\"/a\"";
  for (int i = 0; i < 16; ++i) many += ", \"/a\"";
  EXPECT_NE(error_with("[outputs]\ncollect = [" + many + "]\n"), "accepted");
  EXPECT_NE(error_with("setup = [\"a\\u0000b\"]\n"), "accepted");
  for (std::string_view name : {"", "-a", "A", "a_b", "a/b", "a.b"})
    EXPECT_NE(error_of("name = \"" + std::string(name) + "\"\n[image]\noci = \"x\"\n"), "accepted")
        << name;
}

TEST(TemplateManifest, SyntaxErrorHasItsLine) {
  EXPECT_EQ(error_of("name = \"a\"\nbroken = \n").find("template.toml:2: "), 0u);
  EXPECT_EQ(error_of("name = \"a\"\nname = \"b\"\n").find("template.toml:2: "), 0u);
  EXPECT_NE(error_of(std::string("name = \"\xff\"\n")), "accepted");
}

// toml++ 3.3 is undefined on these.
TEST(TemplateManifest, OtherCharactersThanAsciiComeAsEscapesOnly) {
  EXPECT_EQ(parse_or_die("description = \"caf\\u00e9\"\n" + std::string(kMinimal)).description,
            "caf\u00e9");
  for (std::string_view value : {"0\u00e9", "\"\u00e9\"", "0\"\xc4\xbc", "\"\xff\"", "\x01"})
    EXPECT_EQ(error_of("name = \"a\"\nx = " + std::string(value) + "\n")
                  .find("template.toml:2: has a character that is not ASCII"),
              0u)
        << value;
}

TEST(TemplateManifest, ATableWithoutANameIsRefused) {
  for (std::string_view header : {"[[", "[", "[[\n", "[ \n", "[[ #", "[=", "[a.\n", "[[]]", "[]"})
    EXPECT_NE(error_of(std::string(kMinimal) + std::string(header) + "\n"), "accepted") << header;
  EXPECT_NE(error_of("= 1\n"), "accepted");
  EXPECT_NE(error_of("x = {\n"), "accepted");
}

TEST(TemplateManifest, DeepNestingIsRefusedWithoutOverflowingTheStack) {
  std::string dotted = "a";
  for (int i = 0; i < 30'000; ++i) dotted += ".a";
  EXPECT_NE(error_of(dotted + " = 1\n").find("dots"), std::string::npos);
  EXPECT_NE(error_of("[" + dotted + "]\n").find("dots"), std::string::npos);
  EXPECT_NE(error_of("x = " + std::string(30'000, '[')), "accepted");
  std::string tables;
  for (int i = 0; i < 8'000; ++i) tables += "{a.a=";
  EXPECT_NE(error_of("x = " + tables), "accepted");
}

}  // namespace
}  // namespace atl::store
