#include "api/e2b/build_definition.h"

#include <algorithm>
#include <map>

#include <boost/json/array.hpp>

#include "api/e2b/build_script.h"
#include "api/e2b/sandbox_request.h"
#include "api/json_reader.h"
#include "store/template_sections.h"
#include "store/toml_section.h"

namespace atl::api::e2b {

namespace json = boost::json;
using sandbox::KnownTemplate;

namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxReferenceBytes = 512;
constexpr size_t kMaxSteps = 500;
constexpr size_t kMaxArguments = 256;
constexpr size_t kMaxArgumentBytes = 12 * 1024;
constexpr uint32_t kMaxCpus = 1024;
constexpr uint64_t kMaxMegabytes = 1 << 20;
constexpr uint64_t kMebibyte = 1 << 20;
constexpr uint64_t kReadyMs = 5 * 60 * 1000;

struct Named {
  std::string_view image, name;
};
// Images of E2B's that are templates here.
constexpr Named kOurs[] = {{"e2bdev/base", "base"},
                           {"e2bdev/code-interpreter", "code-interpreter-v1"}};
constexpr Named kSuites[] = {
    {"latest", "stable"}, {"11", "bullseye"}, {"12", "bookworm"}, {"13", "trixie"}};

// The line of [image] that says where the files come from, and the template that is one's own.
struct Source {
  std::string line;
  std::optional<KnownTemplate> base;
};

Result<Source> from_template(const std::string& given, sandbox::Templates& templates,
                             store::TenantId tenant) {
  ATOLL_TRY(TaggedName named, parse_tagged(given));
  ATOLL_TRY(std::optional<KnownTemplate> base, templates.find(tenant, given));
  if (!base)
    return Error(Code::kInvalid, "template '" + given + "' not found").with_reason("invalid_field");
  // A tag may be another version's tomorrow: the one that it has now is written down.
  bool is_tagged = named.tag != sandbox::kDefaultTag && base->image;
  std::string reference = is_tagged ? base->name + "@sha256:" + base->image->string() : named.name;
  return Source{"template = " + store::toml_text(reference) + "\n", std::move(base)};
}

// "debian:bookworm-slim" is a suite that this host has packages of.
std::optional<std::string> debian_suite(std::string_view image) {
  constexpr std::string_view kDebian = "debian";
  constexpr std::string_view kSlim = "-slim";
  if (image != kDebian && !image.starts_with("debian:")) return std::nullopt;
  std::string tag(image == kDebian ? "latest" : image.substr(kDebian.size() + 1));
  if (tag.ends_with(kSlim)) tag.resize(tag.size() - kSlim.size());
  for (const Named& known : kSuites)
    if (known.image == tag) return std::string(known.name);
  return tag;
}

Result<Source> from_image(const std::string& image, sandbox::Templates& templates,
                          store::TenantId tenant) {
  for (const Named& known : kOurs)
    if (image == known.image || image.starts_with(std::string(known.image) + ":"))
      return from_template(std::string(known.name), templates, tenant);
  if (auto suite = debian_suite(image))
    return Source{"debian = { suite = " + store::toml_text(*suite) +
                      ", packages = [\"ca-certificates\", \"curl\"] }\n",
                  {}};
  return Source{"oci = " + store::toml_text(image) + "\n", {}};
}

Result<Source> parse_source(ObjectReader& reader, sandbox::Templates& templates,
                            store::TenantId tenant) {
  auto image = reader.optional_text("fromImage", kMaxReferenceBytes);
  auto other = reader.optional_text("fromTemplate", kMaxReferenceBytes);
  if (other && !other->empty()) return from_template(*other, templates, tenant);
  return from_image(image && !image->empty() ? *image : std::string(kOurs[0].image), templates,
                    tenant);
}

Result<BuildStep> parse_step(const json::value& value, std::vector<Digest>& archives) {
  if (!value.is_object())
    return Error(Code::kInvalid, "steps must be objects").with_reason("invalid_field");
  ObjectReader reader(value.get_object(), "steps.");
  BuildStep step;
  step.type = reader.text("type", 16);
  auto arguments = reader.optional_texts("args", kMaxArguments, kMaxArgumentBytes);
  step.arguments = arguments.value_or(std::vector<std::string>());
  auto hash = reader.optional_text("filesHash", 64);
  ATOLL_TRY_VOID(reader.settle());
  if (!hash) return step;
  auto name = Digest::parse(*hash);
  if (!name)
    return Error(Code::kInvalid, "steps: filesHash must be 64 digits").with_reason("invalid_field");
  // A step of its own even for the same files: each unpacks its own and removes it.
  archives.push_back(*name);
  step.archive = std::to_string(archives.size() - 1);
  return step;
}

Result<void> parse_steps(const json::object& body, BuildScript& script,
                         std::vector<Digest>& archives) {
  const json::value* steps = body.if_contains("steps");
  if (steps == nullptr || steps->is_null()) return {};
  if (!steps->is_array() || steps->get_array().size() > kMaxSteps)
    return Error(Code::kInvalid, "steps must be a list of at most 500")
        .with_reason("invalid_field");
  for (const json::value& value : steps->get_array()) {
    ATOLL_TRY(BuildStep step, parse_step(value, archives));
    ATOLL_TRY_VOID(script.add(step));
  }
  return {};
}

// The section [start], or nothing.
std::string parse_start(ObjectReader& reader) {
  std::string command = reader.optional_text("startCmd", kMaxArgumentBytes).value_or("");
  std::string ready = reader.optional_text("readyCmd", kMaxArgumentBytes).value_or("");
  if (command.empty() && ready.empty()) return "";
  if (command.empty()) command = ":";
  return store::start_text(
      {.command = std::move(command), .ready = std::move(ready), .ready_timeout_ms = kReadyMs});
}

Result<void> refuse_others(ObjectReader& reader) {
  if (reader.has("fromImageRegistry") && !reader.is_null("fromImageRegistry"))
    return unsupported(
        "credentials of registries are the operator's (registry-auth.json), not a build's");
  return {};
}

store::TemplateDefaults defaults_of(const Source& source, const AnnouncedTemplate& announced,
                                    const BuildScript& script) {
  constexpr uint32_t kPids = 1024;  // as the templates of E2B's names have
  store::TemplateDefaults defaults;
  defaults.pids = kPids;
  if (source.base) defaults = source.base->manifest.defaults;
  if (announced.cpu_millis > 0) defaults.cpu_millis = announced.cpu_millis;
  if (announced.memory_bytes > 0) defaults.memory_bytes = announced.memory_bytes;
  defaults.disk_bytes = std::max(defaults.disk_bytes, announced.disk_bytes);
  defaults.user = script.user();
  defaults.directory = script.directory();
  return defaults;
}

}  // namespace

Result<TaggedName> parse_tagged(std::string_view text) {
  size_t colon = text.find(':');
  std::string_view tag = colon == text.npos ? sandbox::kDefaultTag : text.substr(colon + 1);
  ATOLL_TRY_VOID(check_tags({std::string(tag)}));
  return TaggedName{std::string(text.substr(0, colon)), std::string(tag)};
}

Result<void> check_tags(const std::vector<std::string>& tags) {
  for (const std::string& tag : tags)
    if (!sandbox::is_template_tag(tag))
      return Error(Code::kInvalid,
                   "a tag must be 1 to 64 letters, digits, _, . and -, the first neither . nor -")
          .with_reason("invalid_field");
  return {};
}

Result<AnnouncedTemplate> parse_announced(std::string_view body) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  std::string given = reader.text("name", kMaxNameBytes);
  auto tags = reader.optional_texts("tags", 64, kMaxNameBytes);
  auto cpus = reader.optional_small("cpuCount", 1, kMaxCpus);
  auto memory = reader.optional_integer("memoryMB", 16, kMaxMegabytes);
  auto disk = reader.optional_integer("minFreeDiskMb", 0, kMaxMegabytes);
  ATOLL_TRY_VOID(reader.settle());
  AnnouncedTemplate announced;
  ATOLL_TRY(TaggedName named, parse_tagged(given));
  announced.name = std::move(named.name);
  announced.tags = tags.value_or(std::vector<std::string>());
  ATOLL_TRY_VOID(check_tags(announced.tags));
  // A name without a tag means "default", unless tags are given.
  if (given.find(':') != given.npos || announced.tags.empty())
    announced.tags.push_back(std::move(named.tag));
  if (!store::is_template_name(announced.name))
    return Error(Code::kInvalid,
                 "name must be 1 to 63 of a-z, 0-9 and -, and not begin with -: " + announced.name)
        .with_reason("invalid_field");
  announced.cpu_millis = cpus.value_or(0) * 1000;
  announced.memory_bytes = memory.value_or(0) * kMebibyte;
  announced.disk_bytes = disk.value_or(0) * kMebibyte;
  return announced;
}

Result<BuildDefinition> parse_definition(std::string_view body, const AnnouncedTemplate& announced,
                                         sandbox::Templates& templates, store::TenantId tenant) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  ATOLL_TRY_VOID(refuse_others(reader));
  ATOLL_TRY(Source source, parse_source(reader, templates, tenant));
  BuildDefinition definition;
  definition.anew = reader.optional_boolean("force").value_or(false);
  std::string start = parse_start(reader);
  ATOLL_TRY_VOID(reader.settle());
  store::TemplateDefaults usual;
  if (source.base) usual = source.base->manifest.defaults;
  BuildScript script(usual.user, usual.directory);
  ATOLL_TRY_VOID(parse_steps(object, script, definition.archives));
  definition.manifest = "name = " + store::toml_text(announced.name) + "\n[image]\n" + source.line;
  if (!definition.archives.empty()) definition.manifest += "files = \"files\"\n";
  definition.manifest += "setup = [\n";
  for (const std::string& command : script.commands())
    definition.manifest += "  " + store::toml_text(command) + ",\n";
  definition.manifest += "]\n" + start;
  definition.manifest += store::defaults_text(defaults_of(source, announced, script));
  return definition;
}

}  // namespace atl::api::e2b
