// Volumes: named layers of tenants, which sandboxes have mounted at a path: one that writes, or any
// number that read. They belong to no sandbox, are in no snapshot, and have a limit of their own.
//
// A volume is acknowledged when its files are on disk and its row is synced. Files without a row
// are those of a create that was not acknowledged or of a removal that was: the next start removes
// them. Every call names a tenant, and another tenant's volume does not exist for it. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandbox/admission.h"
#include "sandbox/exec_table.h"
#include "store/volume_rows.h"

namespace atl::sandbox {

inline constexpr size_t kMaxVolumesOfTenant = 100;
inline constexpr size_t kMaxVolumeNameBytes = 63;
inline constexpr char kVolumeNameRule[] =
    "must begin with a letter or digit and have only letters, digits, - and _, and not be an id";
bool is_volume_name(std::string_view text);

// As a request has it.
struct WantedVolume {
  std::string name;
  std::string path;  // isolate::is_volume_path()
  bool read_only = false;
};

// Every volume, and who has it.
struct VolumeTable;

// What a sandbox has of them, until it is destroyed or released. May outlive the table.
class [[nodiscard]] VolumeClaim {
 public:
  VolumeClaim() = default;
  VolumeClaim(std::weak_ptr<VolumeTable> table, const store::SandboxRow& row);
  VolumeClaim(VolumeClaim&& other) noexcept;
  VolumeClaim& operator=(VolumeClaim&& other) noexcept;
  ~VolumeClaim() { release(); }
  void release();

 private:
  std::weak_ptr<VolumeTable> table_;
  std::optional<SandboxId> sandbox_;
  std::vector<store::VolumeUse> uses_;
};

// A volume and who has it.
struct ShownVolume {
  store::VolumeRow row;
  std::vector<std::pair<SandboxId, bool>> users = {};  // true: reads only
};

// As a driver wants them.
std::vector<isolate::VolumePlace> places_of(const std::vector<store::VolumeUse>& uses);

class Volumes {
 public:
  Volumes(Services& services, Admission& admission);

  // kConflict with reason volume_exists; kExhausted.
  Task<Result<store::VolumeRow>> create(store::TenantId tenant, std::string name, uint64_t bytes);
  // kNotFound with reason volume_not_found.
  Result<ShownVolume> find(store::TenantId tenant, const std::string& name) const;
  // Whosever it is.
  Result<ShownVolume> find(VolumeId id) const;
  std::vector<ShownVolume> list(store::TenantId tenant) const;
  // kConflict with reason volume_in_use.
  Task<Result<void>> remove(store::TenantId tenant, std::string name);

  // Which volumes are meant. kNotFound, or kConflict with reason volume_in_use: one cannot be had
  // now.
  Result<std::vector<store::VolumeUse>> resolve(store::TenantId tenant,
                                                const std::vector<WantedVolume>& wanted) const;
  // For a row that has been resolved and nothing been awaited since, or that exists already.
  VolumeClaim claim(const store::SandboxRow& row);

  // At start: rows and files are compared, files that no row knows are removed.
  Task<Result<void>> adopt();

 private:
  Task<void> remove_files(VolumeId id);

  Services& services_;
  Admission& admission_;
  std::shared_ptr<VolumeTable> table_;  // claims look whether it is still there
};

}  // namespace atl::sandbox
