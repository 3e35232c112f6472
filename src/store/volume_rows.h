// Table volumes: named layers of tenants. Written with kMachine durability: who was told of a
// volume finds it after a loss of power too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/volume_id.h"
#include "store/database.h"
#include "store/tenant.h"

namespace atl::store {

struct VolumeRow {
  VolumeId id;
  TenantId tenant;
  std::string name;
  uint64_t bytes = 0;  // what may be in it
  int64_t created_at_ms = 0;
};

// A volume that a sandbox has, in its row.
struct VolumeUse {
  VolumeId volume;
  std::string name;
  std::string path;
  bool read_only = false;

  bool operator==(const VolumeUse&) const = default;
};
// One line each: id, "rw" or "ro", name and path, none of which has a blank in it.
std::string encode_volume_uses(const std::vector<VolumeUse>& uses);
Result<std::vector<VolumeUse>> decode_volume_uses(std::string_view text);

class VolumeRows {
 public:
  explicit VolumeRows(Database& database) : database_(database) {}

  // kConflict: the tenant has one of that name.
  Result<void> insert(const VolumeRow& row);
  // kNotFound.
  Result<void> remove(TenantId tenant, const VolumeId& id);

  // At start-up, of all tenants.
  Result<std::vector<VolumeRow>> all();

 private:
  Database& database_;
};

}  // namespace atl::store
