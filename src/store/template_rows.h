// Table templates: what was built, for whom. A name has one current version; others can still be
// asked for by their image's digest, as long as they are kept, and by the tags that they have
// (table template_tags), which keep them. Written with kMachine
// durability: who was told that a template is built finds it after power loss.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

// Of one name, the current one included.
inline constexpr int kKeptTemplateVersions = 3;
inline constexpr int kMaxTemplateTags = 32;
// Of the current version; not one of the 32.
inline constexpr std::string_view kDefaultTag = "default";

struct TemplateRow {
  TenantId tenant;
  std::string name;
  Digest image;
  Digest inputs;         // of everything the image was made from
  Digest pack;           // of the archive it came as, kept to be handed out again
  std::string manifest;  // the text of template.toml
  uint64_t image_bytes = 0;
  int64_t created_at_ms = 0;
  bool current = true;
  int64_t sequence = 0;  // the newest version of a name has the highest
};

struct TemplateTag {
  TenantId tenant;
  std::string name;
  std::string tag;
  Digest image;
  int64_t created_at_ms = 0;
};

class TemplateRows {
 public:
  explicit TemplateRows(Database& database) : database_(database) {}

  // Gives it these tags, which another version may have had, and "default" if there is no version
  // yet, and forgets versions that are too old; `row.current` is not looked at. kExhausted with
  // reason too_many_tags.
  Result<void> put(const TemplateRow& row,
                   const std::vector<std::string>& tags = {std::string(kDefaultTag)});
  // For the copy in memory. The current version of a name before the others, the newest first.
  Result<std::vector<TemplateRow>> all();
  // All versions. kNotFound: there is no such template.
  Result<void> remove(TenantId tenant, std::string_view name);

  // To a version that there is, from the one that has had it.
  Result<void> put_tags(const std::vector<TemplateTag>& tags);
  // "default" stays.
  Result<void> remove_tags(TenantId tenant, std::string_view name,
                           const std::vector<std::string>& tags);
  // All but "default", by tenant, name and tag.
  Result<std::vector<TemplateTag>> all_tags();

 private:
  Result<void> write_tag(const TemplateTag& tag);
  Result<void> make_current(const TemplateTag& tag);
  Result<void> forget_old(int64_t tenant, const std::string& name);

  Database& database_;
};

}  // namespace atl::store
