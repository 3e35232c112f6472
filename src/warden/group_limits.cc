#include "warden/group_limits.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::warden {
namespace {

using linux::Controller;

constexpr uint64_t kCpuPeriodUs = 100'000;

bool is_present(int group, const std::string& file) {
  return faccessat(group, file.c_str(), F_OK, 0) == 0;
}

Result<void> write_limit(int group, const std::string& file, const std::string& value) {
  ATOLL_TRY_VOID(write_file_at(group, file, value));
  ATOLL_TRY(std::string kept, read_file_at(group, file));
  if (kept == value + "\n") return {};
  return Error::from_errno("the kernel did not keep " + value + " in " + file, ERANGE);
}

// In whole pages, rounded down, as the kernel keeps it.
std::string memory_value(const Request& limits) {
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::to_string(limits.memory_bytes / page * page);
}

uint64_t cpu_quota_us(const Request& limits) {
  return uint64_t{limits.cpu_millis} * kCpuPeriodUs / 1000;
}

Result<void> set_v1_memory(int group, const Request& limits) {
  std::string bytes = memory_value(limits);
  ATOLL_TRY_VOID(write_limit(group, "memory.limit_in_bytes", bytes));
  // Memory and swap together; where the kernel does not count swap, it must not be used.
  if (is_present(group, "memory.memsw.limit_in_bytes"))
    return write_limit(group, "memory.memsw.limit_in_bytes", bytes);
  return write_limit(group, "memory.swappiness", "0");
}

Result<void> set_v2_memory(int group, const Request& limits) {
  ATOLL_TRY_VOID(write_limit(group, "memory.max", memory_value(limits)));
  // Kernels without swap have no such file.
  if (!is_present(group, "memory.swap.max")) return {};
  return write_limit(group, "memory.swap.max", "0");
}

}  // namespace

Result<void> set_v1_limit(int group, Controller controller, const Request& limits) {
  switch (controller) {
    case Controller::kMemory:
      return set_v1_memory(group, limits);
    case Controller::kCpu:
      ATOLL_TRY_VOID(write_limit(group, "cpu.cfs_period_us", std::to_string(kCpuPeriodUs)));
      return write_limit(group, "cpu.cfs_quota_us", std::to_string(cpu_quota_us(limits)));
    case Controller::kPids:
      return write_limit(group, "pids.max", std::to_string(limits.pids));
  }
  return Error::from_errno("limit", EINVAL);
}

Result<void> set_v2_limit(int group, Controller controller, const Request& limits) {
  switch (controller) {
    case Controller::kMemory:
      return set_v2_memory(group, limits);
    case Controller::kCpu:
      return write_limit(group, "cpu.max",
                         fmt::format("{} {}", cpu_quota_us(limits), kCpuPeriodUs));
    case Controller::kPids:
      return write_limit(group, "pids.max", std::to_string(limits.pids));
  }
  return Error::from_errno("limit", EINVAL);
}

Result<void> set_disk_rate(int group, const Host& host, uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return {};
  std::string device = fmt::format("{}:{} ", major(host.pool_device), minor(host.pool_device));
  std::string rates = fmt::format("rbps={0} wbps={0}", bytes_per_second);
  ATOLL_TRY_VOID(write_file_at(group, "io.max", device + rates));
  ATOLL_TRY(std::string kept, read_file_at(group, "io.max"));
  if (kept.find(device + rates) != std::string::npos) return {};
  return Error::from_errno("the kernel did not keep " + rates + " in io.max", ERANGE);
}

}  // namespace atl::warden
