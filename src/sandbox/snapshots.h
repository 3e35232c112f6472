// Snapshots: what sandboxes held at some moment, kept under ids of their own; parent links make a
// tree of them. Files only: processes and what contexts remember are not in them.
//
// A snapshot is acknowledged when its files are on disk and its row is synced. Files without a row
// are those of a cut that was not acknowledged or of a removal that was: the next start removes
// them. Every call names a tenant, and another tenant's snapshot does not exist for it. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/admission.h"
#include "sandbox/sandboxes.h"
#include "store/snapshot_rows.h"

namespace atl::sandbox {

inline constexpr uint64_t kMaxSnapshots = 1000;  // of one tenant
inline constexpr size_t kMaxLabelBytes = 200;

struct CutSnapshot {
  std::string label = {};
  std::string metadata = "{}";  // JSON object of strings
  std::string reason = "asked";
};

struct Kept {
  store::SnapshotRow row;
  std::chrono::microseconds frozen;  // how long the sandbox stood still
};

// kNotFound with reason snapshot_not_found.
Task<Result<store::SnapshotRow>> find_snapshot(Ledger& ledger, store::TenantId tenant,
                                               SnapshotId id);

class Snapshots {
 public:
  Snapshots(Sandboxes& sandboxes, Admission& admission)
      : sandboxes_(sandboxes), services_(sandboxes.services()), admission_(admission) {}

  // Of a sandbox that runs or is paused.
  Task<Result<Kept>> cut(std::shared_ptr<Sandbox> sandbox, CutSnapshot request);
  Task<Result<std::vector<store::SnapshotRow>>> list(store::TenantId tenant,
                                                     store::SnapshotQuery wanted);
  Task<Result<void>> remove(store::TenantId tenant, SnapshotId id, store::Orphans orphans);

  // At start: rows and files are compared, files that no row knows are removed.
  Task<Result<void>> adopt();

 private:
  Task<Result<Kept>> keep(std::shared_ptr<Sandbox> sandbox, CutSnapshot request);
  Task<void> remove_files(SnapshotId id);

  Sandboxes& sandboxes_;
  Services& services_;
  Admission& admission_;
  std::map<SnapshotId, Reservation> reservations_;  // of disk, for as long as it is kept
};

}  // namespace atl::sandbox
