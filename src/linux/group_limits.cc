#include "linux/group_limits.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr uint64_t kCpuPeriodUs = 100'000;
constexpr const char* kV1Memory = "memory.limit_in_bytes";
constexpr const char* kV1MemoryAndSwap = "memory.memsw.limit_in_bytes";
constexpr const char* kV1Sockets = "memory.kmem.tcp.limit_in_bytes";
constexpr uint64_t kV1SocketsShare = 8;
constexpr uint64_t kLeastSocketBytes = 8 << 20;

bool is_present(int group, const std::string& file) {
  return faccessat(group, file.c_str(), F_OK, 0) == 0;
}

Result<void> write_limit(int group, const std::string& file, const std::string& value) {
  ATOLL_TRY_VOID(write_file_at(group, file, value));
  ATOLL_TRY(std::string kept, read_file_at(group, file));
  if (kept == value + "\n") return {};
  return Error::from_errno("the kernel did not keep " + value + " in " + file, ERANGE);
}

// One of the numbers on the first line of a control file.
Result<uint64_t> read_number(int group, const std::string& file, int column = 0) {
  ATOLL_TRY(std::string text, read_file_at(group, file));
  const char* begin = text.data();
  const char* end = text.data() + text.size();
  uint64_t value = 0;
  for (int i = 0; i <= column; ++i) {
    while (begin < end && *begin == ' ') ++begin;
    auto [next, error] = std::from_chars(begin, end, value);
    if (error != std::errc()) return Error::from_errno("no limit in " + file, ENODATA);
    begin = next;
  }
  return value;
}

uint64_t cpu_quota_us(uint64_t thousandths) { return thousandths * kCpuPeriodUs / 1000; }

Result<void> set_v1_pages(int group, uint64_t bytes) {
  std::string value = std::to_string(bytes);
  ATOLL_TRY(uint64_t before, read_number(group, kV1Memory));
  // Memory and swap together may at no time be less than memory alone. Where the kernel does not
  // count swap, it must not be used.
  bool counts_swap = is_present(group, kV1MemoryAndSwap);
  if (counts_swap && bytes > before) ATOLL_TRY_VOID(write_limit(group, kV1MemoryAndSwap, value));
  ATOLL_TRY_VOID(write_limit(group, kV1Memory, value));
  if (!counts_swap) return write_limit(group, "memory.swappiness", "0");
  return bytes > before ? Result<void>() : write_limit(group, kV1MemoryAndSwap, value);
}

// Version 1 counts what sockets of TCP and UDP hold apart from all else, and only where this limit
// was set: before, the host pays.
Result<void> set_v1_sockets(int group, uint64_t bytes) {
  uint64_t most = whole_pages(std::max(bytes / kV1SocketsShare, kLeastSocketBytes));
  return write_limit(group, kV1Sockets, std::to_string(most));
}

Result<void> set_v1_memory(int group, uint64_t bytes) {
  ATOLL_TRY_VOID(set_v1_sockets(group, bytes));
  return set_v1_pages(group, bytes);
}

// What memory.max finds in use beyond it, it kills for. memory.high frees what can be freed and
// slows down whoever takes more meanwhile; what is over it afterwards is in use.
Result<void> make_room(int group, uint64_t bytes) {
  ATOLL_TRY_VOID(write_file_at(group, "memory.high", std::to_string(bytes)));
  ATOLL_TRY(uint64_t used, read_number(group, "memory.current"));
  if (used <= bytes) return {};
  return Error::from_errno("memory in use: " + std::to_string(used), EBUSY);
}

Result<void> set_v2_memory(int group, uint64_t bytes) {
  ATOLL_TRY(uint64_t used, read_number(group, "memory.current"));
  Result<void> set = used > 0 ? make_room(group, bytes) : Result<void>();
  if (set) set = write_limit(group, "memory.max", std::to_string(bytes));
  if (used > 0) ATOLL_TRY_VOID(write_file_at(group, "memory.high", "max"));
  if (!set) return set;
  // Kernels without swap have no such file.
  if (!is_present(group, "memory.swap.max")) return {};
  return write_limit(group, "memory.swap.max", "0");
}

Result<void> set_cpu(int group, GroupVersion version, uint64_t thousandths) {
  uint64_t quota = cpu_quota_us(thousandths);
  if (version == GroupVersion::kV2)
    return write_limit(group, "cpu.max", fmt::format("{} {}", quota, kCpuPeriodUs));
  ATOLL_TRY_VOID(write_limit(group, "cpu.cfs_period_us", std::to_string(kCpuPeriodUs)));
  return write_limit(group, "cpu.cfs_quota_us", std::to_string(quota));
}

Result<uint64_t> read_cpu(int group, GroupVersion version) {
  bool v2 = version == GroupVersion::kV2;
  ATOLL_TRY(uint64_t quota, read_number(group, v2 ? "cpu.max" : "cpu.cfs_quota_us"));
  ATOLL_TRY(uint64_t period,
            v2 ? read_number(group, "cpu.max", 1) : read_number(group, "cpu.cfs_period_us"));
  return quota * 1000 / period;
}

std::string device_text(dev_t device) {
  return fmt::format("{}:{} ", major(device), minor(device));
}

}  // namespace

uint64_t whole_pages(uint64_t bytes) {
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes - bytes % page;
}

Result<void> set_group_limit(int group, GroupVersion version, Controller controller,
                             uint64_t value) {
  switch (controller) {
    case Controller::kMemory:
      return version == GroupVersion::kV2 ? set_v2_memory(group, whole_pages(value))
                                          : set_v1_memory(group, whole_pages(value));
    case Controller::kCpu:
      return set_cpu(group, version, value);
    case Controller::kPids:
      return write_limit(group, "pids.max", std::to_string(value));
  }
  return Error::from_errno("limit", EINVAL);
}

Result<uint64_t> read_group_limit(int group, GroupVersion version, Controller controller) {
  switch (controller) {
    case Controller::kMemory:
      return read_number(group, version == GroupVersion::kV2 ? "memory.max" : kV1Memory);
    case Controller::kCpu:
      return read_cpu(group, version);
    case Controller::kPids:
      return read_number(group, "pids.max");
  }
  return Error::from_errno("unknown controller", EINVAL);
}

Result<void> set_disk_rate(int group, dev_t device, uint64_t bytes_per_second) {
  if (bytes_per_second == 0 && !is_present(group, "io.max")) return {};
  std::string rate = bytes_per_second == 0 ? "max" : std::to_string(bytes_per_second);
  std::string line = device_text(device) + fmt::format("rbps={0} wbps={0}", rate);
  ATOLL_TRY_VOID(write_file_at(group, "io.max", line));
  ATOLL_TRY(uint64_t kept, read_disk_rate(group, device));
  if (kept == bytes_per_second) return {};
  return Error::from_errno("the kernel did not keep " + line + " in io.max", ERANGE);
}

Result<uint64_t> read_disk_rate(int group, dev_t device) {
  if (!is_present(group, "io.max")) return uint64_t{0};
  ATOLL_TRY(std::string text, read_file_at(group, "io.max"));
  std::string begin = device_text(device) + "rbps=";
  size_t line = text.starts_with(begin) ? 0 : text.find("\n" + begin);
  if (line == text.npos) return uint64_t{0};
  uint64_t rate = 0;
  const char* at = text.data() + text.find('=', line) + 1;
  auto [next, error] = std::from_chars(at, text.data() + text.size(), rate);
  if (error != std::errc()) return uint64_t{0};  // "max"
  if (text.find(fmt::format("{0} wbps={0} ", rate), line) != text.npos) return rate;
  return Error::from_errno("rates of reading and writing differ", ERANGE);
}

}  // namespace atl::linux
