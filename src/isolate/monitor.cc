#include "isolate/monitor.h"

#include "gvisor/sentry.h"
#include "microvm/machine.h"

namespace atl::isolate {

MonitorNeeds needs_of(Monitor::Kind kind) {
  if (kind == Monitor::Kind::kSentry) return {gvisor::kSentryMemoryBytes, gvisor::kSentryDiskBytes};
  return {microvm::kKernelMemoryBytes + microvm::kMonitorMemoryBytes, microvm::kMonitorDiskBytes};
}

}  // namespace atl::isolate
