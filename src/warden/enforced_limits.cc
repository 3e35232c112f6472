#include "warden/enforced_limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

#include "base/file.h"
#include "linux/subvolume.h"

namespace atl::warden {
namespace {

using linux::Controller;

constexpr const char* kMemory = "limits.memory_bytes";
constexpr const char* kCpu = "limits.cpu_millis";
constexpr const char* kPids = "limits.pids";
constexpr const char* kDisk = "limits.disk_bytes";

// One of the numbers on the first line of a control file.
Result<uint64_t> read_number(const std::string& path, int column = 0) {
  ATOLL_TRY(std::string text, read_file(path));
  const char* begin = text.data();
  const char* end = text.data() + text.size();
  uint64_t value = 0;
  for (int i = 0; i <= column; ++i) {
    while (begin < end && *begin == ' ') ++begin;
    auto [next, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) return Error::from_errno("no limit in " + path, ENODATA);
    begin = next;
  }
  return value;
}

Result<uint64_t> read_v2(const std::string& run, Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return read_number(run + "/memory.max");
    case Controller::kPids:
      return read_number(run + "/pids.max");
    case Controller::kCpu: {
      ATOLL_TRY(uint64_t quota, read_number(run + "/cpu.max"));
      ATOLL_TRY(uint64_t period, read_number(run + "/cpu.max", 1));
      return quota * 1000 / period;
    }
  }
  return Error::from_errno("unknown controller", EINVAL);
}

Result<uint64_t> read_v1(const std::string& group, Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return read_number(group + "/memory.limit_in_bytes");
    case Controller::kPids:
      return read_number(group + "/pids.max");
    case Controller::kCpu: {
      ATOLL_TRY(uint64_t quota, read_number(group + "/cpu.cfs_quota_us"));
      ATOLL_TRY(uint64_t period, read_number(group + "/cpu.cfs_period_us"));
      return quota * 1000 / period;
    }
  }
  return Error::from_errno("unknown controller", EINVAL);
}

Result<uint64_t> read_controller(const Host& host, const SandboxId& id, Controller controller) {
  auto index = static_cast<size_t>(controller);
  if (host.cgroups.in_v2[index])
    return read_v2(host.group_path(host.cgroups.v2, id) + "/run", controller);
  return read_v1(host.group_path(host.cgroups.v1[index], id), controller);
}

uint64_t whole_pages(uint64_t bytes) {
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes - bytes % page;
}

}  // namespace

Result<linux::Facts> read_enforced_limits(const Host& host, const SandboxId& id) {
  ATOLL_TRY(uint64_t memory, read_controller(host, id, Controller::kMemory));
  ATOLL_TRY(uint64_t cpu, read_controller(host, id, Controller::kCpu));
  ATOLL_TRY(uint64_t pids, read_controller(host, id, Controller::kPids));
  ATOLL_TRY(Fd layer, open_at(host.pool.get(), id.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  ATOLL_TRY(uint64_t disk, linux::read_subvolume_limit(layer.get()));
  return linux::Facts{{kMemory, std::to_string(memory)},
                      {kCpu, std::to_string(cpu)},
                      {kPids, std::to_string(pids)},
                      {kDisk, std::to_string(disk)}};
}

linux::Facts wanted_limits(const Request& request) {
  return {{kMemory, std::to_string(whole_pages(request.memory_bytes))},
          {kCpu, std::to_string(request.cpu_millis)},
          {kPids, std::to_string(request.pids)},
          {kDisk, std::to_string(request.disk_bytes)}};
}

}  // namespace atl::warden
