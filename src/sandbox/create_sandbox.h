// CreateSandbox: what a create asks for, as it is once the request was checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/snapshot_id.h"
#include "isolate/wall_limits.h"
#include "sandbox/floor.h"
#include "sandbox/volumes.h"
#include "store/idempotency_rows.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// What a create of a name that a sandbox has already does.
enum class OnNameConflict : unsigned char { kError, kUse };

// Whose sandbox a create of a singleton template answers with: one that all creates of the tenant
// share, or one of its own.
enum class Sharing : unsigned char { kOwn, kSingleton };

// A checked request; absent limits come from the template.
struct CreateSandbox {
  std::string template_name;
  // Starts from this image instead, with the usual limits: for the setup of a template.
  std::optional<Digest> image;
  // Starts with the files of this snapshot, and its template and limits where nothing else is said.
  std::optional<SnapshotId> snapshot = {};
  std::optional<std::string> name;
  OnNameConflict on_name_conflict = OnNameConflict::kError;
  std::optional<store::Isolation> isolation;  // at least
  Preference preference = Preference::kWeakest;
  Sharing sharing = Sharing::kOwn;
  std::optional<uint32_t> cpu_millis;
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> pids;
  std::optional<uint64_t> disk_bytes;
  bool takes_less_disk = false;  // where the host has no disk of `disk_bytes`
  std::optional<uint64_t> output_bytes;
  std::optional<uint32_t> open_files;
  std::optional<uint64_t> disk_bytes_per_second;
  std::optional<uint32_t> cpu_time_ms;
  isolate::OnOom on_oom = isolate::OnOom::kEndExec;
  uint32_t required_extras = 0;   // bits of isolate::Extra
  std::string on_ttl = "delete";  // as in the row
  bool auto_resume = false;
  std::optional<uint64_t> files_only_after_ms = {};
  bool files_only_under_pressure = false;
  std::string checkpoint = "none";  // as in the row
  std::optional<uint64_t> ttl_ms;
  std::optional<uint64_t> idle_ttl_ms;
  std::string metadata = "{}";           // JSON object of strings
  std::string environment = "{}";        // JSON object of strings
  std::optional<std::string> user = {};  // of its execs, as in the row
  std::optional<std::string> directory = {};
  std::optional<std::string> network = {};  // network_text()
  std::vector<WantedVolume> volumes = {};
  std::optional<std::string> persistence = {};  // as in the row
  bool transient = false;                       // as in the row
  std::optional<store::IdempotencyKey> idempotency_key;
};

}  // namespace atl::sandbox
