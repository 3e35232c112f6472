// Table sandboxes. Written with kProcess durability: a sandbox does not outlive the machine either,
// unless its files do (Catalog::sandboxes_of).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/snapshot_id.h"
#include "store/database.h"
#include "store/tenant.h"
#include "store/volume_rows.h"

namespace atl::store {

inline constexpr size_t kMaxPageRows = 1000;

struct SandboxRow {
  SandboxId id;
  TenantId tenant;
  std::optional<std::string> name = {};  // of one sandbox of its tenant that is not "deleting"
  std::string state = "creating";        // "creating" | "running" | "deleting" | "failed"
  std::string template_name = {};
  Digest image;
  std::string isolation = "jail";  // the wall that it has: "jail" | "gvisor" | "microvm"
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint32_t pids = 0;
  uint64_t disk_bytes = 0;
  uint64_t output_bytes = 0;  // per stream of each exec
  uint32_t open_files = 1024;
  uint64_t disk_bytes_per_second = 0;      // 0: not limited
  std::string on_oom = "exec";             // "exec" | "sandbox": what an out-of-memory kill ends
  uint32_t cpu_time_ms = 0;                // of each exec that does not say; 0: not limited
  uint32_t required_extras = 0;            // bits of isolate::Extra, which are never renumbered
  uint64_t ttl_ms = 0;                     // 0: none
  int64_t ttl_from_ms = 0;                 // when it began to count
  uint64_t idle_ttl_ms = 0;                // 0: none
  std::string on_ttl = "delete";           // "delete" | "pause": what the end of either ttl does
  bool auto_resume = false;                // whoever uses what is inside lets it go on
  int64_t paused_at_ms = 0;                // not 0: "running", and frozen since then
  int64_t paused_sequence = 0;             // its place among all that were paused
  uint64_t files_only_after_ms = 0;        // how long a pause keeps its memory; 0: always
  bool files_only_under_pressure = false;  // it may be given back when others need it, too
  // It is paused, and only its files are left: what went, as encode_not_carried() writes it.
  std::optional<std::string> released = {};
  std::optional<SnapshotId> snapshot = {};  // what its files come from, or were last kept as
  uint64_t inherited_bytes = 0;             // that its layer began with
  bool restoring = false;                   // its isolate is to be made anew, from `snapshot`
  std::string checkpoint = "none";          // "none" | "each": a snapshot before every exec and run
  std::array<unsigned char, 16> nonce{};
  std::string metadata = "{}";     // JSON object
  std::string environment = "{}";  // JSON: default environment of execs
  std::string user = "user";       // who runs an exec that names nobody
  std::string directory = {};      // where it runs; empty: the user's home
  std::string network = "{}";      // JSON: what it may reach; without rules, nothing
  int64_t created_at_ms = 0;
  int64_t sequence = 0;  // its place in the tenant's list
  std::string failure = {};
  uint32_t generation = 1;
  uint32_t next_exec = 1;
  // A change of the limits was begun: those here are not less than what is in force, and whoever
  // takes the sandbox up brings both together.
  bool limits_unsettled = false;
  std::string persistence = "ephemeral";  // "ephemeral" | "persistent": what its files survive
  std::vector<VolumeUse> volumes = {};    // that are mounted in it; from its create on
  bool transient = false;  // of one of our own works: in no list, and gone at the next start
};

// A place in a tenant's list. It carries the whole sort key, so paging goes on at the right place
// also when the sandbox it names was deleted meanwhile.
struct SandboxCursor {
  int64_t sequence;
  SandboxId id;

  static SandboxCursor of(const SandboxRow& row) { return {row.sequence, row.id}; }
  static std::optional<SandboxCursor> parse(std::string_view text);
  std::string string() const;
};

// Part of a tenant's list, the oldest first.
struct SandboxQuery {
  std::optional<std::string> state = {};  // also "paused"
  std::string metadata = "[]";  // JSON: [key, value] pairs that must all be in a sandbox's
  std::optional<SandboxCursor> after = {};
  size_t limit = kMaxPageRows;  // at most kMaxPageRows
};

class SandboxRows {
 public:
  explicit SandboxRows(Database& database) : database_(database) {}

  // kConflict with reason name_taken: the tenant has another sandbox of that name.
  Result<void> insert(const SandboxRow& row);
  // kNotFound also for another tenant's id, here and below.
  Result<void> set_state(TenantId tenant, const SandboxId& id, std::string_view state,
                         std::string_view failure);
  // paused_at_ms, paused_sequence, ttl_from_ms and released, as in `row`.
  Result<void> set_paused(const SandboxRow& row);
  // snapshot, inherited_bytes, generation, nonce and restoring, as in `row`.
  Result<void> set_restoring(const SandboxRow& row);
  // Limits, ttls, what they do, and metadata, as in `row`.
  Result<void> change(const SandboxRow& row);
  // Its execs go with it.
  Result<void> remove(TenantId tenant, const SandboxId& id);
  Result<std::optional<SandboxRow>> find(TenantId tenant, const SandboxId& id);
  Result<std::vector<SandboxRow>> list(TenantId tenant, const SandboxQuery& wanted);
  Result<uint64_t> count(TenantId tenant);

  // At start-up, of all tenants.
  Result<std::vector<SandboxRow>> all();
  // Of every tenant, each once: they are in use.
  Result<std::vector<Digest>> all_images();

 private:
  Database& database_;
};

}  // namespace atl::store
