#include "sandbox/templates.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"

namespace atl::sandbox {
namespace {

constexpr size_t kMaxManifestBytes = 256 * 1024;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::string_view kVersionMark = "@sha256:";
constexpr std::string_view kToolbox = "toolbox";
// The first that is built.
constexpr std::string_view kSentries[] = {"gvisor", "gvisor-debian"};
constexpr std::string_view kMachine = "microvm";

bool is_called(const store::TemplateManifest& manifest, std::string_view name) {
  return manifest.name == name || std::find(manifest.aliases.begin(), manifest.aliases.end(),
                                            name) != manifest.aliases.end();
}

}  // namespace

bool is_template_tag(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  auto is_allowed = [&](char c) { return is_word(c) || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= kMaxBytes && is_word(text[0]) &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

struct Templates::Reference {
  std::string name;
  Version version = {};
};

std::optional<Templates::Reference> Templates::parse_reference(std::string_view text) {
  size_t mark = text.find_first_of("@:");
  Reference reference{.name = std::string(text.substr(0, mark))};
  if (!store::is_template_name(reference.name)) return std::nullopt;
  if (mark == text.npos) return reference;
  std::string_view version = text.substr(mark);
  if (version.starts_with(kVersionMark)) {
    reference.version.image = Digest::parse(version.substr(kVersionMark.size()));
    return reference.version.image ? std::optional(reference) : std::nullopt;
  }
  std::string_view tag = version.substr(1);
  if (version[0] != ':' || !is_template_tag(tag)) return std::nullopt;
  if (tag != kDefaultTag) reference.version.tag = tag;
  return reference;
}

Result<void> Templates::set_rows(std::vector<store::TemplateRow> rows,
                                 std::vector<store::TemplateTag> tags) {
  std::vector<Entry> entries;
  for (store::TemplateRow& row : rows) {
    auto manifest = store::parse_template_manifest(row.manifest, "template " + row.name);
    // A later version of Atoll may be stricter: such a template must be built again.
    if (!manifest) {
      log_warning("template cannot be used", {{"template", row.name}, manifest.error()});
      continue;
    }
    entries.push_back({.row = std::move(row), .manifest = std::move(*manifest)});
  }
  entries_ = std::move(entries);
  tags_ = std::move(tags);
  return {};
}

bool Templates::is_version(const store::TemplateRow& row, const Version& version) const {
  if (version.image) return row.image == *version.image;
  if (version.tag.empty()) return row.current;
  return std::any_of(tags_.begin(), tags_.end(), [&](const store::TemplateTag& tag) {
    return tag.tenant == row.tenant && tag.name == row.name && tag.tag == version.tag &&
           tag.image == row.image;
  });
}

const Templates::Entry* Templates::find_entry(store::TenantId tenant, std::string_view name,
                                              const Version& version) const {
  const Entry* aliased = nullptr;
  for (const Entry& entry : entries_) {
    bool fits = entry.row.tenant == tenant && is_version(entry.row, version) &&
                is_called(entry.manifest, name);
    if (fits && entry.row.name == name) return &entry;
    if (fits && aliased == nullptr) aliased = &entry;
  }
  return aliased;
}

const store::TemplateRow* Templates::find_row(store::TenantId tenant, std::string_view name) const {
  const Entry* found = find_entry(tenant, name, {});
  return found == nullptr || found->row.name != name ? nullptr : &found->row;
}

const store::TemplateRow* Templates::find_made_of(store::TenantId tenant, std::string_view name,
                                                  const Digest& inputs) const {
  for (const Entry& entry : entries_) {
    const store::TemplateRow& row = entry.row;
    if (row.tenant == tenant && row.name == name && row.inputs == inputs) return &row;
  }
  return nullptr;
}

std::vector<store::TemplateTag> Templates::tags(store::TenantId tenant,
                                                std::string_view name) const {
  std::vector<store::TemplateTag> found;
  for (const store::TemplateTag& tag : tags_)
    if (tag.tenant == tenant && tag.name == name) found.push_back(tag);
  return found;
}

std::optional<std::string> Templates::find_built_in(std::string_view name) const {
  if (!store::is_template_name(name)) return std::nullopt;
  std::string folder = built_in_ + "/" + std::string(name);
  if (access((folder + "/template.toml").c_str(), R_OK) != 0) return std::nullopt;
  return folder;
}

const std::vector<KnownTemplate>& Templates::built_in() {
  struct stat facts;
  std::optional<int64_t> stamp;
  if (stat(built_in_.c_str(), &facts) == 0)
    stamp = facts.st_mtim.tv_sec * kNanosecondsPerSecond + facts.st_mtim.tv_nsec;
  if (stamp == built_in_stamp_ns_) return built_in_read_;
  built_in_stamp_ns_ = stamp;
  built_in_read_.clear();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(built_in_, error)) {
    auto text = read_file(entry.path().string() + "/template.toml", kMaxManifestBytes);
    if (!text) continue;
    auto manifest = store::parse_template_manifest(*text, entry.path().string());
    if (!manifest) {
      log_warning("built-in template cannot be used", {manifest.error()});
      continue;
    }
    built_in_read_.push_back({.name = entry.path().filename().string(),
                              .origin = KnownTemplate::Origin::kBuiltIn,
                              .manifest = std::move(*manifest),
                              .image = {},
                              .image_bytes = 0,
                              .created_at_ms = {}});
  }
  return built_in_read_;
}

Result<std::optional<KnownTemplate>> Templates::find_installed(const std::string& name) {
  auto found = installed_.find_template(name);
  // One that cannot be used is told about when it is asked for; see find_template().
  if (!found || !*found) return std::optional<KnownTemplate>();
  return std::optional(KnownTemplate{.name = name,
                                     .origin = KnownTemplate::Origin::kInstalled,
                                     .manifest = (*found)->manifest,
                                     .image = (*found)->image,
                                     .image_bytes = 0,
                                     .created_at_ms = {}});
}

Result<std::optional<KnownTemplate>> Templates::find_other(const std::string& name) {
  ATOLL_TRY(std::optional<KnownTemplate> found, find_installed(name));
  if (found) return found;
  for (const KnownTemplate& one : built_in())
    if (one.name == name) return std::optional(one);
  ATOLL_TRY(std::vector<std::string> names, installed_.list());
  for (const std::string& other : names) {
    ATOLL_TRY(found, find_installed(other));
    if (found && is_called(found->manifest, name)) return found;
  }
  for (const KnownTemplate& one : built_in())
    if (is_called(one.manifest, name)) return std::optional(one);
  return std::optional<KnownTemplate>();
}

Result<std::optional<KnownTemplate>> Templates::find(store::TenantId tenant,
                                                     std::string_view name) {
  auto reference = parse_reference(name);
  if (!reference) return std::optional<KnownTemplate>();
  for (store::TenantId owner : {tenant, store::kLocalTenant}) {
    const Entry* entry = find_entry(owner, reference->name, reference->version);
    if (entry == nullptr) continue;
    return std::optional(KnownTemplate{
        .name = entry->row.name,
        .origin = owner == tenant ? KnownTemplate::Origin::kOwn : KnownTemplate::Origin::kOperator,
        .manifest = entry->manifest,
        .image = entry->row.image,
        .image_bytes = entry->row.image_bytes,
        .created_at_ms = entry->row.created_at_ms});
  }
  ATOLL_TRY(std::optional<KnownTemplate> other, find_other(reference->name));
  const Version& version = reference->version;
  bool is_other = !version.tag.empty() || (version.image && other && other->image != version.image);
  if (is_other) other.reset();
  return other;
}

Result<std::optional<store::Template>> Templates::find_template(store::TenantId tenant,
                                                                std::string_view name) {
  ATOLL_TRY(std::optional<KnownTemplate> found, find(tenant, name));
  // Says what is wrong with one that is installed and cannot be used.
  if (!found) return installed_.find_template(name);
  if (found->manifest.kind == store::TemplateKind::kToolbox)
    return Error(Code::kInvalid, "the template " + found->name +
                                     " is what sandboxes have at /opt/atoll; none can "
                                     "start from it")
        .with_reason("template_is_toolbox")
        .with_field("template");
  if (found->manifest.kind == store::TemplateKind::kMonitor)
    return Error(Code::kInvalid, "the template " + found->name +
                                     " is what runs sandboxes behind that wall; none can start "
                                     "from it")
        .with_reason("template_is_monitor")
        .with_field("template");
  if (found->image)
    return std::optional(
        store::Template{.manifest = std::move(found->manifest), .image = *found->image});
  if (on_wanted_) ATOLL_TRY_VOID(on_wanted_(found->name));
  return Error(Code::kUnavailable,
               "the template " + found->name + " is being built; this happens once")
      .with_reason("template_building")
      .with_field("template");
}

Result<std::vector<KnownTemplate>> Templates::list(store::TenantId tenant) {
  ATOLL_TRY(std::vector<std::string> names, installed_.list());
  for (const Entry& entry : entries_)
    if (entry.row.tenant == tenant || entry.row.tenant == store::kLocalTenant)
      names.push_back(entry.row.name);
  for (const KnownTemplate& one : built_in()) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<KnownTemplate> all;
  for (const std::string& name : names) {
    ATOLL_TRY(std::optional<KnownTemplate> found, find(tenant, name));
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

std::optional<Digest> Templates::find_for_all(std::string_view name, store::TemplateKind kind) {
  auto found = find(store::kLocalTenant, name);
  if (!found || !*found || (*found)->manifest.kind != kind) return std::nullopt;
  return (*found)->image;
}

std::optional<Digest> Templates::toolbox() {
  return find_for_all(kToolbox, store::TemplateKind::kToolbox);
}

std::optional<Digest> Templates::sentry_image() {
  std::optional<Digest> image;
  for (std::string_view name : kSentries)
    if (!image) image = find_for_all(name, store::TemplateKind::kMonitor);
  return image;
}

Offered Templates::offered() {
  Offered offered = {.sentry = sentry_image(),
                     .machine = find_for_all(kMachine, store::TemplateKind::kMonitor)};
  offered.platform = findings_.first_platform;
  if (const auto& tried = findings_.platform; tried && tried->image == offered.sentry) {
    if (tried->platform) {
      offered.platform = *tried->platform;
    } else {
      offered.sentry_failure = tried->reason;
      offered.sentry.reset();
    }
  }
  if (findings_.hardware && findings_.hardware->image == offered.machine)
    offered.virtualization = findings_.hardware->virtualization;
  return offered;
}

Result<std::vector<Digest>> Templates::images() {
  std::vector<Digest> used;
  for (const Entry& entry : entries_) used.push_back(entry.row.image);
  ATOLL_TRY(std::vector<std::string> names, installed_.list());
  for (const std::string& name : names) {
    ATOLL_TRY(std::optional<store::Template> found, installed_.find_template(name));
    if (found) used.push_back(found->image);
  }
  return used;
}

std::vector<Digest> Templates::packs() const {
  std::vector<Digest> used;
  for (const Entry& entry : entries_) used.push_back(entry.row.pack);
  return used;
}

}  // namespace atl::sandbox
