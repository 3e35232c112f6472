#include "store/template_manifest.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/glob.h"
#include "store/toml_section.h"

namespace atl::store {
namespace {

// The same bounds that the warden checks.
constexpr Range kCpuMillis = {10, 1'024'000};
constexpr Range kMemoryBytes = {16ull << 20, 1ull << 40};
constexpr Range kDiskBytes = {1ull << 20, 1ull << 44};
constexpr Range kPids = {8, 65'536};
constexpr Range kOutputBytes = {1, 1ull << 34};
constexpr Range kOpenFiles = {16, 1 << 20};
constexpr Range kDiskBytesPerSecond = {64 << 10, 1ull << 40};
constexpr uint64_t kMaxCpuTimeMs = 30ull * 24 * 3'600'000;
constexpr uint64_t kMaxReadyMs = 600'000;
constexpr Range kPoolWarm = {0, 10'000};
constexpr uint64_t kMaxTtlMs = 366ull * 24 * 3'600'000;
constexpr size_t kMaxDescriptionBytes = 4096;
constexpr size_t kMaxOutputGlobs = 16;
constexpr size_t kMaxCommandBytes = 16 * 1024;
constexpr size_t kMaxReferenceBytes = 512;
constexpr size_t kMaxVariables = 64;
constexpr size_t kMaxVariableBytes = 8 * 1024;
constexpr size_t kMaxUserBytes = 64;
constexpr size_t kMaxDirectoryBytes = 1024;
constexpr std::string_view kVersionMark = "@sha256:";

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";

bool is_lower_or_digit(char c) {
  return kLower.find(c) != kLower.npos || kDigits.find(c) != kDigits.npos;
}

bool is_letter_or_digit(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

bool is_made_of(std::string_view text, bool (*letter)(char), std::string_view others) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || others.find(c) != others.npos; });
}

// Of a Debian suite or package: policy 5.6.7.
bool is_debian_name(std::string_view text) {
  return text.size() >= 2 && text.size() <= 128 && is_lower_or_digit(text[0]) &&
         is_made_of(text, is_lower_or_digit, "+-.");
}

bool is_reference(std::string_view text) {
  return !text.empty() && text.size() <= kMaxReferenceBytes && is_letter_or_digit(text[0]) &&
         is_made_of(text, is_letter_or_digit, "._-/:@");
}

// A file beneath the template's folder.
bool is_archive_path(std::string_view text) {
  if (text.empty() || text.size() > kMaxReferenceBytes || !is_letter_or_digit(text[0]))
    return false;
  return is_made_of(text, is_letter_or_digit, "._-/") &&
         ("/" + std::string(text) + "/").find("/../") == std::string::npos;
}

bool is_folder_name(std::string_view text) {
  return is_archive_path(text) && text.find('/') == text.npos;
}

// "name" or "@scope/name".
bool is_npm_name(std::string_view text) {
  size_t slash = text.find('/');
  if (text.starts_with('@') != (slash != text.npos)) return false;
  std::string_view scope = slash == text.npos ? "a" : text.substr(1, slash - 1);
  std::string_view name = text.substr(slash == text.npos ? 0 : slash + 1);
  for (std::string_view part : {scope, name})
    if (part.empty() || part.size() > 128 || !is_lower_or_digit(part[0]) ||
        !is_made_of(part, is_lower_or_digit, "._-"))
      return false;
  return true;
}

// Exactly one version, so that the digest can be that of nothing else.
bool is_npm_version(std::string_view text) {
  return text.size() <= 32 && std::count(text.begin(), text.end(), '.') == 2 &&
         text.front() != '.' && text.back() != '.' && text.find("..") == text.npos &&
         text.find_first_not_of("0123456789.") == text.npos;
}

bool is_npm_integrity(std::string_view text) {
  constexpr std::string_view kPrefix = "sha512-";
  constexpr size_t kDigits64 = 86;  // of 64 bytes, before the padding
  return text.size() == kPrefix.size() + kDigits64 + 2 && text.starts_with(kPrefix) &&
         text.ends_with("==") &&
         is_made_of(text.substr(kPrefix.size(), kDigits64), is_letter_or_digit, "+/");
}

// "name" or "name@sha256:<64 digits>".
bool is_template_reference(std::string_view text) {
  size_t mark = text.find(kVersionMark);
  if (!is_template_name(text.substr(0, mark))) return false;
  if (mark == text.npos) return true;
  std::string_view digits = text.substr(mark + kVersionMark.size());
  return digits.size() == 64 && digits.find_first_not_of("0123456789abcdef") == digits.npos;
}

bool is_variable(std::string_view text) {
  return !text.empty() && text.size() <= 256 && kDigits.find(text[0]) == kDigits.npos &&
         is_made_of(text, is_letter_or_digit, "_");
}

bool is_user(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUserBytes && text[0] != '-' &&
         is_made_of(text, is_letter_or_digit, "._-");
}

bool is_module(std::string_view text) {
  return !text.empty() && text.size() <= 256 && text[0] != '.' && text.back() != '.' &&
         is_made_of(text, is_letter_or_digit, "._");
}

bool is_language(std::string_view text) {
  return !text.empty() && text.size() <= 32 && kLower.find(text[0]) != kLower.npos &&
         is_made_of(text, is_lower_or_digit, "+-");
}

// Only the alphabet: what a rule means is decided where the policy is enforced.
bool is_network_rule(std::string_view text) {
  return !text.empty() && text.size() <= 300 && is_made_of(text, is_lower_or_digit, ".-_*:/[]");
}

bool is_glob(std::string_view text) { return text.size() <= 4096 && text.starts_with('/'); }

bool is_inner_glob(std::string_view text) {
  return is_glob(text) && (std::string(text) + "/").find("/../") == std::string::npos;
}

// Each costs a look into the sandbox when it is deleted.
bool is_output_glob(std::string_view text) { return is_inner_glob(text) && Glob::parse(text).ok(); }

bool is_command(std::string_view text) { return !text.empty() && text.size() <= kMaxCommandBytes; }

void check_all(TomlSection& section, std::string_view key, const std::vector<std::string>& values,
               bool (*valid)(std::string_view)) {
  for (const std::string& value : values)
    if (!valid(value)) section.refuse(key, "\"" + value + "\" is not a valid entry");
}

template <typename E>
void read_choice(TomlSection& section, std::string_view key,
                 std::span<const std::string_view> choices, E& value) {
  std::string text;
  if (!section.text(key, text)) return;
  auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) {
    value = static_cast<E>(found - choices.begin());
    return;
  }
  std::string allowed;
  for (std::string_view choice : choices)
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(choice) + "\"";
  section.refuse(key, "\"" + text + "\" is not one of " + allowed);
}

constexpr std::array<std::string_view, 3> kIsolations = {"jail", "gvisor", "microvm"};
constexpr std::array<std::string_view, 3> kLatencies = {"instant", "fast", "any"};
constexpr std::array<std::string_view, 3> kPersistences = {"ephemeral", "persistent", "checkpoint"};
constexpr std::array<std::string_view, 2> kOutputModes = {"text", "rich"};
constexpr std::array<std::string_view, 3> kKinds = {"root", "toolbox", "monitor"};

void read_debian(TomlSection& debian, DebianSource& source) {
  debian.require(debian.text("suite", source.suite), "suite");
  if (!is_debian_name(source.suite)) debian.refuse("suite", "is not the name of a Debian suite");
  debian.texts("packages", source.packages);
  check_all(debian, "packages", source.packages, is_debian_name);
  debian.finish();
}

void read_npm(TomlSection& package, std::vector<NpmPackage>& packages) {
  NpmPackage npm;
  package.require(package.text("name", npm.name), "name");
  if (!is_npm_name(npm.name)) package.refuse("name", "is not the name of an npm package");
  package.require(package.text("version", npm.version), "version");
  if (npm.version.empty() || !is_npm_version(npm.version))
    package.refuse("version", "must be one version like \"20.1.0\"");
  package.require(package.text("integrity", npm.integrity), "integrity");
  if (!is_npm_integrity(npm.integrity))
    package.refuse("integrity", "must be \"sha512-\" and 88 characters of base 64");
  package.finish();
  packages.push_back(std::move(npm));
}

void read_image(TomlSection& image, TemplateManifest& manifest) {
  int sources = 0;
  if (auto debian = image.section("debian")) {
    ++sources;
    DebianSource source;
    read_debian(*debian, source);
    manifest.image = std::move(source);
  }
  std::string value;
  if (image.text("oci", value)) {
    ++sources;
    if (!is_reference(value)) image.refuse("oci", "is not the reference of an image");
    manifest.image = OciSource{value};
  }
  if (image.text("oci_archive", value)) {
    ++sources;
    if (!is_archive_path(value)) image.refuse("oci_archive", "is not a file beneath the template");
    manifest.image = OciArchiveSource{value};
  }
  if (image.text("oci_layout", value)) {
    ++sources;
    if (!is_archive_path(value)) image.refuse("oci_layout", "is not a place beneath the template");
    manifest.image = OciLayoutSource{value};
  }
  if (image.text("rootfs_tar", value)) {
    ++sources;
    if (!is_archive_path(value)) image.refuse("rootfs_tar", "is not a file beneath the template");
    manifest.image = RootfsTarSource{value};
  }
  bool grows = image.text("template", value);
  if (grows) {
    ++sources;
    if (!is_template_reference(value)) image.refuse("template", "is not the name of a template");
    manifest.image = TemplateSource{value};
  }
  for (TomlSection& package : image.sections("npm")) read_npm(package, manifest.npm);
  if (auto go = image.section("go")) manifest.go = read_go_program(*go);
  image.texts("remove", manifest.remove);
  check_all(image, "remove", manifest.remove, is_inner_glob);
  if (image.text("files", manifest.files) && !is_folder_name(manifest.files))
    image.refuse("files", "is not a folder beside the manifest");
  image.texts("setup", manifest.setup);
  check_all(image, "setup", manifest.setup, is_command);
  image.finish();
  if (grows && !manifest.npm.empty()) image.refuse("npm", "cannot be added to another template");
  if (grows && manifest.go) image.refuse("go", "cannot be added to another template");
  if (sources == 0 && manifest.go) manifest.image = EmptySource{};
  if (grows && !manifest.remove.empty())
    image.refuse("remove", "cannot be taken from another template: use setup");
  if (grows && manifest.kind == TemplateKind::kToolbox)
    image.refuse("template", "is nothing that a toolbox can be made of");
  if (sources != 1 && !(sources == 0 && manifest.go))
    image.refuse_section(
        "needs exactly one of debian, oci, oci_archive, oci_layout, rootfs_tar, template, or go "
        "alone");
}

void read_run(TomlSection& section, std::vector<LanguageRun>& runs) {
  LanguageRun run = read_language_run(section);
  for (const LanguageRun& other : runs)
    if (other.language == run.language) section.refuse("language", "is there twice");
  runs.push_back(std::move(run));
}

void read_context(TomlSection& context, TemplateManifest& manifest) {
  ContextRuntime runtime;
  context.require(context.text("language", runtime.language), "language");
  if (!is_language(runtime.language)) context.refuse("language", "is not the name of a language");
  context.texts("preload", runtime.preload);
  check_all(context, "preload", runtime.preload, is_module);
  context.finish();
  manifest.context = std::move(runtime);
}

// Who runs what, with which variables, where nobody says anything else.
void read_exec_defaults(TomlSection& section, TemplateDefaults& defaults) {
  section.text_pairs("env", defaults.environment);
  if (defaults.environment.size() > kMaxVariables)
    section.refuse("env", "has more than 64 variables");
  for (const auto& [name, value] : defaults.environment)
    if (!is_variable(name) || value.size() > kMaxVariableBytes)
      section.refuse("env", "has a name that no variable can have, or a value over 8 KiB");
  if (section.text("user", defaults.user) && !is_user(defaults.user))
    section.refuse("user", "is not the name of a user");
  bool given = section.text("cwd", defaults.directory);
  if (given &&
      (!defaults.directory.starts_with('/') || defaults.directory.size() > kMaxDirectoryBytes))
    section.refuse("cwd", "must be an absolute path");
}

// Without a class a create takes as long as the floor does.
void read_walls(TomlSection& section, TemplateDefaults& defaults) {
  read_choice<Isolation>(section, "isolation", kIsolations, defaults.isolation);
  defaults.latency = static_cast<Latency>(defaults.isolation);
  read_choice<Latency>(section, "latency", kLatencies, defaults.latency);
  if (strongest_within(defaults.latency) < defaults.isolation)
    section.refuse("latency", "allows no wall as strong as defaults.isolation");
}

void read_defaults(TomlSection& section, TemplateDefaults& defaults) {
  read_walls(section, defaults);
  read_choice<Persistence>(section, "persistence", kPersistences, defaults.persistence);
  section.duration("ttl", kMaxTtlMs, defaults.ttl_ms);
  section.duration("idle_ttl", kMaxTtlMs, defaults.idle_ttl_ms);
  uint64_t cpu_millis = defaults.cpu_millis;
  section.millis("cpu", kCpuMillis, cpu_millis);
  defaults.cpu_millis = static_cast<uint32_t>(cpu_millis);
  section.size("memory", kMemoryBytes, defaults.memory_bytes);
  section.size("disk", kDiskBytes, defaults.disk_bytes);
  uint64_t pids = defaults.pids;
  section.whole("pids", kPids, pids);
  defaults.pids = static_cast<uint32_t>(pids);
  section.size("output", kOutputBytes, defaults.output_bytes);
  uint64_t open_files = defaults.open_files;
  section.whole("open_files", kOpenFiles, open_files);
  defaults.open_files = static_cast<uint32_t>(open_files);
  section.size("disk_rate", kDiskBytesPerSecond, defaults.disk_bytes_per_second);
  uint64_t cpu_time_ms = defaults.cpu_time_ms;
  section.duration("cpu_time", kMaxCpuTimeMs, cpu_time_ms);
  defaults.cpu_time_ms = static_cast<uint32_t>(cpu_time_ms);
  read_exec_defaults(section, defaults);
  section.finish();
}

void read_start(TomlSection& section, std::optional<StartProgram>& start) {
  StartProgram read;
  section.require(section.text("command", read.command), "command");
  section.text("ready", read.ready);
  section.duration("ready_timeout", kMaxReadyMs, read.ready_timeout_ms);
  if (read.command.empty() || read.command.size() > kMaxCommandBytes)
    section.refuse("command", "must have 1 to 16384 bytes");
  if (read.ready.size() > kMaxCommandBytes) section.refuse("ready", "is longer than 16384 bytes");
  if (read.ready_timeout_ms == 0) section.refuse("ready_timeout", "must be more than nothing");
  section.finish();
  start = std::move(read);
}

void read_network(TomlSection& network, TemplateManifest& manifest) {
  network.texts("allow", manifest.network_allow);
  check_all(network, "allow", manifest.network_allow, is_network_rule);
  if (auto upstream = network.section("upstream")) {
    upstream->require(upstream->text("proxy", manifest.upstream_proxy), "proxy");
    upstream->text("credentials", manifest.upstream_credentials);
    bool is_proxy = is_network_rule(manifest.upstream_proxy) &&
                    manifest.upstream_proxy.find(':') != std::string::npos;
    if (!is_proxy) upstream->refuse("proxy", "must be name:port");
    upstream->finish();
  }
  network.finish();
}

void read_outputs(TomlSection& outputs, TemplateManifest& manifest) {
  outputs.texts("collect", manifest.outputs_collect);
  check_all(outputs, "collect", manifest.outputs_collect, is_output_glob);
  if (manifest.outputs_collect.size() > kMaxOutputGlobs)
    outputs.refuse("collect", "has more than 16 entries");
  read_choice<OutputMode>(outputs, "mode", kOutputModes, manifest.outputs_mode);
  outputs.finish();
}

void read_pool(TomlSection& pool, TemplateManifest& manifest) {
  uint64_t warm = manifest.pool_warm;
  pool.whole("warm", kPoolWarm, warm);
  manifest.pool_warm = static_cast<uint32_t>(warm);
  uint64_t most = std::max<uint64_t>(manifest.pool_max, warm);
  pool.whole("max", kPoolWarm, most);
  if (most < warm) pool.refuse("max", "is less than pool.warm");
  manifest.pool_max = static_cast<uint32_t>(most);
  pool.boolean("singleton", manifest.pool_singleton);
  pool.finish();
}

}  // namespace

std::string_view isolation_name(Isolation isolation) {
  return kIsolations[static_cast<size_t>(isolation)];
}

std::string_view latency_name(Latency latency) { return kLatencies[static_cast<size_t>(latency)]; }

// One class for each wall, in the same order.
Isolation strongest_within(Latency latency) { return static_cast<Isolation>(latency); }

std::optional<Isolation> parse_isolation(std::string_view name) {
  auto found = std::find(kIsolations.begin(), kIsolations.end(), name);
  if (found == kIsolations.end()) return std::nullopt;
  return static_cast<Isolation>(found - kIsolations.begin());
}

bool is_template_name(std::string_view name) {
  return !name.empty() && name.size() <= 63 && name[0] != '-' &&
         is_made_of(name, is_lower_or_digit, "-");
}

Result<TemplateManifest> parse_template_manifest(std::string_view text, const std::string& file) {
  ATOLL_TRY(TomlDocument document, TomlDocument::parse(text, file));
  TomlSection top(document, document.root(), "");
  TemplateManifest manifest;
  top.require(top.text("name", manifest.name), "name");
  if (!is_template_name(manifest.name))
    top.refuse("name", "must be 1 to 63 of a-z, 0-9 and -, and not begin with -");
  read_choice<TemplateKind>(top, "kind", kKinds, manifest.kind);
  top.text("description", manifest.description);
  top.texts("aliases", manifest.aliases);
  check_all(top, "aliases", manifest.aliases, is_template_name);
  if (manifest.description.size() > kMaxDescriptionBytes)
    top.refuse("description", "is longer than 4096 bytes");

  auto image = top.section("image");
  top.require(image.has_value(), "image");
  if (image) read_image(*image, manifest);
  for (TomlSection& run : top.sections("run")) read_run(run, manifest.runs);
  if (auto context = top.section("context")) read_context(*context, manifest);
  if (auto defaults = top.section("defaults")) {
    read_defaults(*defaults, manifest.defaults);
    manifest.has_defaults = true;
  }
  if (auto start = top.section("start")) read_start(*start, manifest.start);
  if (auto network = top.section("network")) {
    read_network(*network, manifest);
    manifest.has_network = true;
  }
  if (auto outputs = top.section("outputs")) {
    read_outputs(*outputs, manifest);
    manifest.has_outputs = true;
  }
  if (auto pool = top.section("pool")) read_pool(*pool, manifest);
  top.finish();
  if (document.error()) return *document.error();
  return manifest;
}

}  // namespace atl::store
