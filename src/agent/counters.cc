#include "agent/counters.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace atl::agent {
namespace {

constexpr std::string_view kMemoryKills = "oom_kill";
constexpr std::string_view kRefusedForks = "max";
constexpr size_t kMaxFileBytes = 1024;

struct FileText {
  char bytes[kMaxFileBytes];
  size_t size = 0;
  std::string_view view() const { return {bytes, size}; }
};

FileText read_from_start(int fd) {
  FileText text;
  ssize_t count = pread(fd, text.bytes, sizeof text.bytes, 0);
  if (count > 0) text.size = static_cast<size_t>(count);
  return text;
}

}  // namespace

std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

std::optional<uint64_t> find_count(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return parse_count(line.substr(key.size() + 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

Counters::Counters(Fd memory_events, Fd pids_events, Fd memory_peak, OfLeaves of_leaves)
    : memory_events_(std::move(memory_events)),
      pids_events_(std::move(pids_events)),
      memory_peak_(std::move(memory_peak)),
      of_leaves_(of_leaves) {}

Result<Counters> Counters::create(Fd memory_events, Fd pids_events, Fd memory_peak,
                                  OfLeaves of_leaves) {
  // Without these an exec that hit a limit would look like one that failed by itself.
  if (!find_count(read_from_start(memory_events.get()).view(), kMemoryKills))
    return Error(Code::kInvalid, "memory events do not count kills");
  if (!find_count(read_from_start(pids_events.get()).view(), kRefusedForks))
    return Error(Code::kInvalid, "pids events do not count refusals");
  return Counters(std::move(memory_events), std::move(pids_events), std::move(memory_peak),
                  of_leaves);
}

Counts Counters::read() const {
  FileText memory = read_from_start(memory_events_.get());
  FileText pids = read_from_start(pids_events_.get());
  return {.memory_kills = find_count(memory.view(), kMemoryKills).value_or(0),
          .explained_kills = explained_kills_,
          .refused_forks = find_count(pids.view(), kRefusedForks).value_or(0)};
}

// Kernels before 6.11 count a refused fork where the forking process is, newer ones where the limit
// is.
bool Counters::refused_a_fork(const Counts& before, const Leaf& leaf) const {
  if (read().refused_forks > before.refused_forks) return true;
  if (!of_leaves()) return false;
  auto events = leaf.read("pids.events");
  return events && find_count(*events, kRefusedForks).value_or(0) > 0;
}

std::optional<uint64_t> Counters::peak_memory_bytes() const {
  if (!memory_peak_) return std::nullopt;
  return parse_count(read_from_start(memory_peak_.get()).view());
}

}  // namespace atl::agent
