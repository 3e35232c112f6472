// The inventory: R/isolates/<id>/, one directory for each isolate that exists, made first and
// removed last. Whatever else an isolate holds is named after its id, so the record is enough to
// free all of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Held for the whole launch or removal: two helpers never work on one isolate at a time. Freed when
// the last copy of the descriptor is closed, also by death.
struct RecordLock {
  Fd directory;
};

// Fails with EEXIST when the id is taken.
Result<RecordLock> create_record(const Host& host, const SandboxId& id);

// Waits for whoever works on it. Nothing if there is no such record.
Result<std::optional<RecordLock>> lock_record(const Host& host, const SandboxId& id);

// The same without waiting: nothing also while somebody works on it.
Result<std::optional<RecordLock>> try_lock_record(const Host& host, const SandboxId& id);

// Removes the record with the notes in it; absence is a success.
Result<void> remove_record(const Host& host, const SandboxId& id);

bool record_exists(const Host& host, const SandboxId& id);

// Sorted.
Result<std::vector<SandboxId>> list_records(const Host& host);

}  // namespace atl::warden
