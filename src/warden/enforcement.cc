#include "warden/enforcement.h"

#include <unistd.h>

#include "linux/file_rules.h"
#include "linux/resource_limits.h"

namespace atl::warden {
namespace {

using linux::BtrfsQuotas;
using linux::Controller;

// Version 1 throttles what a process itself sends to the device; buffered writes are sent by a
// kernel thread and escape it. Version 2 knows whose pages they are, if memory is there as well.
bool can_limit_disk_rate(const Host& host) {
  if (!host.cgroups.in_v2[static_cast<size_t>(Controller::kMemory)]) return false;
  std::string file = host.parent_group_path(host.cgroups.v2) + "/io.max";
  return host.cgroups.io_in_v2 && access(file.c_str(), F_OK) == 0;
}

Refusal find_refused_controller(const Host& host) {
  if (!host.cgroups.has(Controller::kCpu)) return Refusal::kCpu;
  if (!host.cgroups.has(Controller::kMemory)) return Refusal::kMemory;
  if (!host.cgroups.has(Controller::kPids)) return Refusal::kPids;
  return Refusal::kNone;
}

Refusal find_refused_extra(const Host& host, const Request& request) {
  auto wants = [&request](Extra extra) {
    return (request.required & static_cast<uint32_t>(extra)) != 0;
  };
  if (wants(Extra::kLandlock) && !linux::has_landlock()) return Refusal::kLandlock;
  if (wants(Extra::kTimeNamespace) && !has_time_namespaces()) return Refusal::kTimeNamespace;
  if (wants(Extra::kSimpleQuotas) && host.pool_quotas != BtrfsQuotas::kSimple)
    return Refusal::kSimpleQuotas;
  bool hardware = request.guest.kind == agent::GuestKind::kHardwareMachine;
  if (hardware ? !host.machine_devices : wants(Extra::kHardwareVirtualization))
    return Refusal::kHardwareVirtualization;
  return Refusal::kNone;
}

}  // namespace

bool has_time_namespaces() { return access("/proc/self/ns/time", F_OK) == 0; }

Refusal find_refusal(const Host& host, const Request& request) {
  Refusal controller = find_refused_controller(host);
  if (controller != Refusal::kNone) return controller;
  // A pool that is not there at all is a failure of its step, not a property of the host.
  if (host.pool && host.pool_quotas == BtrfsQuotas::kNone) return Refusal::kDisk;
  if (request.disk_bytes_per_second != 0 && !can_limit_disk_rate(host)) return Refusal::kDiskRate;
  if (!linux::may_open_files(request.open_files)) return Refusal::kOpenFiles;
  return find_refused_extra(host, request);
}

uint16_t find_extras(const Host& host) {
  uint32_t found = 0;
  Request one = {};
  for (one.required = 1; one.required <= kAllExtras; one.required <<= 1)
    if (find_refused_extra(host, one) == Refusal::kNone) found |= one.required;
  return static_cast<uint16_t>(found);
}

}  // namespace atl::warden
