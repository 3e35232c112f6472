// Table snapshots: states of sandboxes that are kept, as a tree. Written with kMachine durability:
// who was told of a snapshot finds it after a loss of power too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"
#include "store/database.h"
#include "store/sandbox_rows.h"
#include "store/tenant.h"

namespace atl::store {

struct SnapshotRow {
  SnapshotId id;
  TenantId tenant;
  std::optional<SnapshotId> parent = {};  // what its sandbox came from, or was kept as before
  SandboxId sandbox;                      // that it was cut from; may be gone
  std::string label = {};
  std::string metadata = "{}";   // JSON object
  std::string reason = "asked";  // "asked" | "rollback": made before one | "fork": during one
  uint64_t bytes = 0;            // at most that many are in it
  int64_t created_at_ms = 0;
  int64_t sequence = 0;      // its place in the tenant's list
  int64_t cut_sequence = 0;  // drawn when it was cut: execs and runs after it are not in it
  // The wall of its sandbox, which alone can read it; empty: it was cut when that was not stored.
  std::string isolation = {};
  // What a sandbox that is made from it gets unless it is told otherwise.
  std::string template_name = {};
  Digest image;
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint32_t pids = 0;
  uint64_t disk_bytes = 0;
  // Of one that is sealed: the blob that names all others, and how many bytes they have.
  std::optional<Digest> manifest = {};
  uint64_t sealed_bytes = 0;
};

// A place in a tenant's list: with the whole sort key, as a SandboxCursor.
struct SnapshotCursor {
  int64_t sequence;
  SnapshotId id;

  static SnapshotCursor of(const SnapshotRow& row) { return {row.sequence, row.id}; }
  static std::optional<SnapshotCursor> parse(std::string_view text);
  std::string string() const;
};

// Part of a tenant's list, the oldest first.
struct SnapshotQuery {
  std::optional<SandboxId> sandbox = {};  // only those that were cut from it
  std::optional<SnapshotCursor> after = {};
  size_t limit = kMaxPageRows;  // at most kMaxPageRows
};

// What becomes of the children of a snapshot that is removed.
enum class Orphans : unsigned char { kRefuse, kAdopt };

class SnapshotRows {
 public:
  explicit SnapshotRows(Database& database) : database_(database) {}

  // Also makes it what its sandbox was last kept as.
  Result<void> insert(const SnapshotRow& row);
  Result<std::optional<SnapshotRow>> find(TenantId tenant, const SnapshotId& id);
  Result<std::vector<SnapshotRow>> list(TenantId tenant, const SnapshotQuery& wanted);
  Result<uint64_t> count(TenantId tenant);
  // Gives its parent, to which kAdopt leaves its children; and the sandboxes that come from it go
  // there in any case. kConflict with reason snapshot_has_children; kNotFound.
  Result<std::optional<SnapshotId>> remove(TenantId tenant, const SnapshotId& id, Orphans orphans);

  // manifest and sealed_bytes, as in `row`. kNotFound.
  Result<void> set_sealed(const SnapshotRow& row);
  // What is needed of the blobs: by a tenant, and by all.
  Result<std::vector<Digest>> manifests(TenantId tenant);
  Result<std::vector<Digest>> all_manifests();

  // At start-up, of all tenants.
  Result<std::vector<SnapshotRow>> all();
  // Of every tenant, each once: they are in use.
  Result<std::vector<Digest>> all_images();

 private:
  Database& database_;
};

}  // namespace atl::store
