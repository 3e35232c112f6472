#include "agent/limit_watch.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "agent/counters.h"
#include "base/file.h"

namespace atl::agent {
namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr uint64_t kPageBytes = 4096;

// "AnonPages:   <n> kB"; gVisor's include what is in files in memory.
uint64_t bytes_of(std::string_view text, std::string_view name) {
  size_t at = text.find(name);
  if (at == text.npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  return at == text.npos ? 0 : parse_count(text.substr(at)).value_or(0) * 1024;
}

uint64_t used_bytes(const std::string& memory_info) {
  auto text = read_file(memory_info);
  if (!text) return 0;
  uint64_t all = bytes_of(*text, "AnonPages:"), in_files = bytes_of(*text, "Shmem:");
  return all - std::min(all, in_files);
}

// "<size> <resident> …", in pages; nothing of a process that has just ended.
uint64_t resident_bytes(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/statm");
  size_t space = text ? text->find(' ') : std::string::npos;
  if (space == std::string::npos) return 0;
  return parse_count(std::string_view(*text).substr(space + 1)).value_or(0) * kPageBytes;
}

}  // namespace

LimitWatch::LimitWatch(const GuestLimits& limits, Fd refused_forks, std::string memory_info)
    : memory_bytes_(limits.memory_bytes),
      processes_(limits.pids),
      refused_forks_(std::move(refused_forks)),
      memory_info_(std::move(memory_info)) {}

std::optional<uint32_t> LimitWatch::look(std::span<const Leaf> leaves, SteadyTime now) {
  if (now < looks_at_) return std::nullopt;
  looks_at_ = now + kPause;
  if (threads_in(leaves) >= processes_) count_refusal();
  if (used_bytes(memory_info_) <= memory_bytes_) return std::nullopt;
  return largest(leaves);
}

void LimitWatch::look_at_end(std::span<const Leaf> leaves) {
  constexpr size_t kEnded = 1;  // it was one of them
  if (threads_in(leaves) + kEnded >= processes_) count_refusal();
}

size_t LimitWatch::threads_in(std::span<const Leaf> leaves) {
  size_t threads = 0;
  for (const Leaf& leaf : leaves)
    if (auto current = leaf.read("pids.current")) threads += parse_count(*current).value_or(0);
  return threads;
}

// Pages that processes share count for each, which does not matter here.
std::optional<uint32_t> LimitWatch::largest(std::span<const Leaf> leaves) {
  std::optional<uint32_t> worst;
  uint64_t most = 0;
  for (const Leaf& leaf : leaves) {
    auto members = leaf.processes();
    uint64_t own = 0;
    if (members)
      for (pid_t pid : *members) own += resident_bytes(pid);
    if (own > most) worst = leaf.number();
    most = std::max(most, own);
  }
  return worst;
}

void LimitWatch::count_refusal() {
  std::string text = "max " + std::to_string(++refusals_) + "\n";
  [[maybe_unused]] ssize_t written = pwrite(refused_forks_.get(), text.data(), text.size(), 0);
}

}  // namespace atl::agent
