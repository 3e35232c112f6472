#include "linux/resource_usage.h"

#include <charconv>
#include <string>

#include "base/file.h"

namespace atl::linux {
namespace {

// The number behind `key` at the start of a line; an empty key is the first line itself.
Result<uint64_t> read_count(int group, const std::string& file, const std::string& key = "") {
  ATOLL_TRY(std::string text, read_file_at(group, file));
  text.insert(0, "\n");
  std::string begin = "\n" + key + (key.empty() ? "" : " ");
  size_t found = text.find(begin);
  if (found == text.npos) return Error::from_errno("no " + key + " in " + file, ENODATA);
  uint64_t value = 0;
  auto parsed =
      std::from_chars(text.data() + found + begin.size(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return Error::from_errno("no number in " + file, ENODATA);
  return value;
}

}  // namespace

Result<uint64_t> read_cpu_us(int group) { return read_count(group, "cpu.stat", "usage_usec"); }

Result<MemoryUsage> read_memory_usage(int group, GroupVersion version) {
  bool v2 = version == GroupVersion::kV2;
  MemoryUsage usage;
  ATOLL_TRY(usage.used_bytes, read_count(group, v2 ? "memory.current" : "memory.usage_in_bytes"));
  ATOLL_TRY(usage.cache_bytes, read_count(group, "memory.stat", v2 ? "file" : "total_cache"));
  return usage;
}

Result<uint64_t> read_memory_kills(int group, GroupVersion version) {
  bool v2 = version == GroupVersion::kV2;
  return read_count(group, v2 ? "memory.events" : "memory.oom_control", "oom_kill");
}

}  // namespace atl::linux
