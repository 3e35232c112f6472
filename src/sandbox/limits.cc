#include "sandbox/limits.h"

namespace atl::sandbox {

Limits limits_of(const store::SandboxRow& row) {
  isolate::WallLimits wall{row.cpu_millis, row.memory_bytes, row.pids, row.disk_bytes};
  wall.open_files = row.open_files;
  wall.disk_bytes_per_second = row.disk_bytes_per_second;
  wall.on_oom = row.on_oom == "sandbox" ? isolate::OnOom::kEndSandbox : isolate::OnOom::kEndExec;
  wall.required_extras = row.required_extras;
  wall.inherited_bytes = row.inherited_bytes;
  Limits limits{wall, row.output_bytes, row.cpu_time_ms};
  using Kind = isolate::Monitor::Kind;
  if (row.isolation != "jail")
    limits.monitor = needs_of(row.isolation == "gvisor" ? Kind::kSentry : Kind::kMachine);
  return limits;
}

}  // namespace atl::sandbox
