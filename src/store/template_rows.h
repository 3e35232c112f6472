// Table templates: what was built, for whom. A name has one current version; those before it can
// still be asked for by their image's digest, as long as they are kept. Written with kMachine
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
};

class TemplateRows {
 public:
  explicit TemplateRows(Database& database) : database_(database) {}

  // Makes it the current version of its name and forgets those that are too old.
  Result<void> put(const TemplateRow& row);
  // For the copy in memory. The current version of a name before the others, the newest first.
  Result<std::vector<TemplateRow>> all();
  // All versions. kNotFound: there is no such template.
  Result<void> remove(TenantId tenant, std::string_view name);

 private:
  Database& database_;
};

}  // namespace atl::store
