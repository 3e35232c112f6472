// Changes of a sandbox that exists: its ttls, its metadata and its limits.
//
// Limits that the wall enforces are changed in three steps, so that at no time less is promised to
// a sandbox than it may use, whatever dies in between: the larger of old and new is reserved and
// stored, marked as unsettled; the driver changes what is in force; the new ones are stored. A row
// that is found unsettled at start is brought together with its wall again.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

// What is absent stays as it is.
struct ChangeSandbox {
  std::optional<uint64_t> ttl_ms = {};       // from now on
  std::optional<uint64_t> idle_ttl_ms = {};  // 0: none
  std::optional<std::string> on_ttl = {};
  std::optional<bool> auto_resume = {};
  std::optional<uint64_t> files_only_after_ms = {};  // 0: never
  std::optional<bool> files_only_under_pressure = {};
  std::optional<std::string> checkpoint = {};
  std::optional<std::string> metadata = {};  // JSON object of strings
  std::optional<std::string> network = {};   // network_text(); in force when the change returns
  std::optional<uint32_t> cpu_millis = {};
  std::optional<uint64_t> memory_bytes = {};
  std::optional<uint32_t> pids = {};
  std::optional<uint64_t> disk_bytes = {};
  std::optional<uint64_t> disk_bytes_per_second = {};  // 0: not limited
  // Of execs that are started from now on.
  std::optional<uint64_t> output_bytes = {};
  std::optional<uint32_t> open_files = {};   // cannot grow: it is a hard limit of what runs inside
  std::optional<uint32_t> cpu_time_ms = {};  // 0: not limited
};

// That its limit leaves room beside what it began with.
Result<void> check_disk(const store::SandboxRow& row);

// All of it, or nothing and the error says why. Not twice at a time for one sandbox.
Task<Result<void>> change_sandbox(Services& services, std::shared_ptr<Sandbox> sandbox,
                                  ChangeSandbox request);

// At start: puts the stored limits in force. What cannot be settled stays marked.
Task<Result<void>> settle_limits(Services& services, std::shared_ptr<Sandbox> sandbox);

}  // namespace atl::sandbox
