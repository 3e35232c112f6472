// The metadata of one host: tenants, keys, sandboxes, execs, contexts, snapshots, volumes,
// templates, idempotency keys and usage, in one SQLite file.
//
// Two classes of durability share the file through two connections. What dies with the machine
// anyway is not synced: sandboxes, execs, contexts, usage. What somebody was told is kept is synced
// before the call returns: tenants, keys, templates, snapshots, volumes, persistent sandboxes,
// idempotency keys. Every table has a tenant_id and every query takes a TenantId; the few that do
// not say so by name (all, all_running, find_by_hash).
//
// Every call is one transaction of its own. A Catalog belongs to one thread at a time; its sequence
// to all.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "store/context_rows.h"
#include "store/database.h"
#include "store/epoch_keeper.h"
#include "store/exec_rows.h"
#include "store/idempotency_rows.h"
#include "store/key_rows.h"
#include "store/sandbox_rows.h"
#include "store/sequence.h"
#include "store/snapshot_rows.h"
#include "store/template_rows.h"
#include "store/tenant_rows.h"
#include "store/usage_rows.h"
#include "store/volume_rows.h"

namespace atl::store {

struct PairedPlaces;

class Catalog {
 public:
  // Creates the file or migrates it; refuses one that is corrupt, newer or readable by others.
  static Result<std::unique_ptr<Catalog>> open(const std::string& path);
  // The same beside files, which it refuses if they are not its own: see pairing.h.
  static Result<std::unique_ptr<Catalog>> open(const PairedPlaces& places);

  TenantRows& tenants() { return tenants_; }
  KeyRows& keys() { return keys_; }
  SandboxRows& sandboxes() { return sandboxes_; }
  // The same, synced: of one whose files outlive the machine.
  SandboxRows& kept_sandboxes() { return kept_sandboxes_; }
  // Whichever of both a change of this one needs.
  SandboxRows& sandboxes_of(const SandboxRow& row) {
    bool kept = row.persistence != "ephemeral" || row.released;
    return kept ? kept_sandboxes_ : sandboxes_;
  }
  ExecRows& execs() { return execs_; }
  ContextRows& contexts() { return contexts_; }
  IdempotencyRows& idempotency() { return idempotency_; }
  UsageRows& usage() { return usage_; }
  TemplateRows& templates() { return templates_; }
  SnapshotRows& snapshots() { return snapshots_; }
  VolumeRows& volumes() { return volumes_; }
  Sequence& sequence() { return sequence_; }

  EpochKeeper& epoch() { return epoch_; }

 private:
  Catalog(Database process, Database machine, int64_t first)
      : process_(std::move(process)), machine_(std::move(machine)), sequence_(first) {}

  Database process_;
  Database machine_;
  TenantRows tenants_{machine_};
  KeyRows keys_{machine_};
  SandboxRows sandboxes_{process_};
  SandboxRows kept_sandboxes_{machine_};
  ExecRows execs_{process_};
  ContextRows contexts_{process_};
  IdempotencyRows idempotency_{machine_};
  UsageRows usage_{process_};
  TemplateRows templates_{machine_};
  SnapshotRows snapshots_{machine_};
  VolumeRows volumes_{machine_};
  Sequence sequence_;
  EpochKeeper epoch_{process_, machine_};
};

// The schema, for tests that start from each older version.
std::span<const Sql> catalog_migrations();

}  // namespace atl::store
