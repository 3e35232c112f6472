// Snapshots: what sandboxes held at some moment, kept under ids of their own; parent links make a
// tree of them. Files only: processes and what contexts remember are not in them.
//
// A snapshot is acknowledged when its files are on disk and its row is synced. Files without a row
// are those of a cut that was not acknowledged or of a removal that was: the next start removes
// them. Every call names a tenant, and another tenant's snapshot does not exist for it. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sandbox/admission.h"
#include "sandbox/not_carried.h"
#include "sandbox/sandboxes.h"
#include "store/snapshot_rows.h"

namespace atl::sandbox {

inline constexpr uint64_t kMaxSnapshots = 1000;  // of one tenant
inline constexpr size_t kMaxLabelBytes = 200;
inline constexpr size_t kMaxCheckpoints = 100;  // of one sandbox; the oldest go

struct CutSnapshot {
  std::string label = {};
  std::string metadata = "{}";  // JSON object of strings
  std::string reason = "asked";
  // What it was read from, if that is how its sandbox came to be.
  std::optional<Digest> manifest = {};
  uint64_t sealed_bytes = 0;
};

struct Kept {
  store::SnapshotRow row;
  std::chrono::microseconds frozen;  // how long the sandbox stood still
};

struct RolledBack {
  std::shared_ptr<Sandbox> sandbox = {};  // what has the id now
  std::optional<SnapshotId> undo = {};    // what it held before
  std::vector<NotCarried> not_carried = {};
};

// kNotFound with reason snapshot_not_found.
Task<Result<store::SnapshotRow>> find_snapshot(Ledger& ledger, store::TenantId tenant,
                                               SnapshotId id);

class Snapshots {
 public:
  // For as long as somebody makes something from it, nobody removes it.
  class InUse {
   public:
    InUse(Snapshots& snapshots, SnapshotId id)
        : all_(snapshots.in_use_), place_(all_->insert(id)) {}
    ~InUse() { all_->erase(place_); }
    InUse(const InUse&) = delete;

   private:
    std::shared_ptr<std::multiset<SnapshotId>> all_;  // may be destroyed after the snapshots
    std::multiset<SnapshotId>::iterator place_;
  };

  // Sandboxes that want checkpoints get them from now on.
  Snapshots(Sandboxes& sandboxes, Admission& admission);

  // Of a sandbox that runs or is paused, also without its memory.
  Task<Result<Kept>> cut(std::shared_ptr<Sandbox> sandbox, CutSnapshot request);
  Task<Result<std::vector<store::SnapshotRow>>> list(store::TenantId tenant,
                                                     store::SnapshotQuery wanted);
  Task<Result<void>> remove(store::TenantId tenant, SnapshotId id, store::Orphans orphans);

  // Makes the sandbox anew with the files of a snapshot of its line, after what it holds was kept.
  // Its contexts start again. kConflict with reason snapshot_of_another_line.
  Task<Result<RolledBack>> roll_back(std::shared_ptr<Sandbox> sandbox, SnapshotId id);

  // Removes what was kept by itself and whose sandbox is gone.
  Task<void> sweep();

  // Called when one that was sealed is gone.
  void set_on_unsealed(std::function<void()> call) { on_unsealed_ = std::move(call); }

  // At start: rows and files are compared, files that no row knows are removed.
  Task<Result<void>> adopt();

 private:
  Task<Result<Kept>> keep(std::shared_ptr<Sandbox> sandbox, CutSnapshot request);
  Task<void> remove_files(SnapshotId id);
  Task<Result<void>> checkpoint(std::shared_ptr<Sandbox> sandbox, std::string label);

  Sandboxes& sandboxes_;
  Services& services_;
  Admission& admission_;
  std::map<SnapshotId, Reservation> reservations_;  // of disk, for as long as it is kept
  std::shared_ptr<std::multiset<SnapshotId>> in_use_ =
      std::make_shared<std::multiset<SnapshotId>>();
  std::function<void()> on_unsealed_ = {};
};

}  // namespace atl::sandbox
