// Templates: all that a sandbox can start from, by name. A tenant's own come first, then what the
// operator has built for everybody, then what is installed on this host, then what comes with Atoll
// and has not been built yet: asking for one of those begins its build.
//
// A name may be an alias, `name@sha256:…` is the version with that image, and `name:tag` the one
// that has the tag; "default" is a tag of the current one. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/floor.h"
#include "store/template_rows.h"
#include "store/templates.h"

namespace atl::sandbox {

using store::kDefaultTag;
// 1 to 64 of letters, digits, _, . and -, and the first neither . nor -.
bool is_template_tag(std::string_view text);

struct KnownTemplate {
  enum class Origin : unsigned char { kOwn, kOperator, kInstalled, kBuiltIn };
  std::string name;
  Origin origin = Origin::kOwn;
  store::TemplateManifest manifest;
  std::optional<Digest> image;  // nothing: not built yet
  uint64_t image_bytes = 0;     // 0: not known
  std::optional<int64_t> created_at_ms;
};

class Templates {
 public:
  // `built_in` is a directory with a folder for each template that comes with Atoll; it need not
  // exist.
  Templates(store::Templates& installed, std::string built_in)
      : installed_(installed), built_in_(std::move(built_in)) {}

  // Take the place of all rows that were known.
  Result<void> set_rows(std::vector<store::TemplateRow> rows, std::vector<store::TemplateTag> tags);

  // Nothing: there is no such template. An error with reason template_building: it is known, and
  // will be there.
  Result<std::optional<store::Template>> find_template(store::TenantId tenant,
                                                       std::string_view name);
  // Also one that is not built.
  Result<std::optional<KnownTemplate>> find(store::TenantId tenant, std::string_view name);
  // In alphabetical order; one that another hides is left out.
  Result<std::vector<KnownTemplate>> list(store::TenantId tenant);

  // The tenant's own row of that name, its current version.
  const store::TemplateRow* find_row(store::TenantId tenant, std::string_view name) const;
  // Some version of it that was made of these inputs, the current one if it was. Null: none.
  const store::TemplateRow* find_made_of(store::TenantId tenant, std::string_view name,
                                         const Digest& inputs) const;
  // Those of the tenant's own template, but for "default".
  std::vector<store::TemplateTag> tags(store::TenantId tenant, std::string_view name) const;
  // The folder of a template that comes with Atoll.
  std::optional<std::string> find_built_in(std::string_view name) const;
  // The image that every sandbox has at /opt/atoll: the operator's own or the host's, if it is
  // built; a tenant's template of that name is none.
  std::optional<Digest> toolbox();
  // The walls whose images are there, in the same way.
  Offered offered();
  // What was found of walls here, for who tries them to fill in (wall_trials.h).
  WallFindings& findings() { return findings_; }
  // Of gVisor, whether it was seen to run or not.
  std::optional<Digest> sentry_image();
  // Every image that a row or an installed template names.
  Result<std::vector<Digest>> images();
  std::vector<Digest> packs() const;

  // Called with the name of a built-in template that was asked for and is not built. An error: it
  // cannot be built.
  using OnWanted = std::function<Result<void>(const std::string& name)>;
  void set_on_wanted(OnWanted call) { on_wanted_ = std::move(call); }

 private:
  struct Entry {
    store::TemplateRow row;
    store::TemplateManifest manifest;
  };
  // What follows the name of a template; at most one of them.
  struct Version {
    std::optional<Digest> image = {};
    std::string tag = {};
  };
  const Entry* find_entry(store::TenantId tenant, std::string_view name,
                          const Version& version) const;
  bool is_version(const store::TemplateRow& row, const Version& version) const;
  struct Reference;
  static std::optional<Reference> parse_reference(std::string_view text);
  // Those that come with Atoll; read again when their directory has changed.
  const std::vector<KnownTemplate>& built_in();
  std::optional<Digest> find_for_all(std::string_view name, store::TemplateKind kind);
  // What is installed under this very name.
  Result<std::optional<KnownTemplate>> find_installed(const std::string& name);
  // What is installed or comes with Atoll, by name or alias.
  Result<std::optional<KnownTemplate>> find_other(const std::string& name);

  store::Templates& installed_;
  std::string built_in_;
  std::vector<Entry> entries_;
  std::vector<store::TemplateTag> tags_;
  std::vector<KnownTemplate> built_in_read_;
  std::optional<int64_t> built_in_stamp_ns_;
  OnWanted on_wanted_;
  WallFindings findings_;
};

}  // namespace atl::sandbox
