#include "warden/kernel_memory_guard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/log.h"
#include "linux/cgroup_tree.h"
#include "warden/inventory.h"

namespace atl::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kLeastGrowthBytes = 192ull << 20;
constexpr uint64_t kMostGrowthBytes = 1ull << 30;
constexpr uint64_t kShareOfHost = 256;
constexpr milliseconds kBlindPause{5000};
constexpr const char* kEndedNote = "ended_for_kernel_memory";

// The number on the line that begins with `name`, wherever it stands.
Result<uint64_t> number_of(std::string_view text, std::string_view name) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(name)) continue;
    std::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != ':' && rest[0] != ' ')) continue;
    rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
    uint64_t number = 0;
    auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (parsed.ec == std::errc()) return number;
  }
  return Error::from_errno("no number of " + std::string(name), ENODATA);
}

// Of all sandboxes: groups count what those beneath them are charged for, too.
Result<uint64_t> read_charged(const Host& host) {
  constexpr auto kMemory = static_cast<size_t>(linux::Controller::kMemory);
  if (host.cgroups.in_v2[kMemory]) {
    ATOLL_TRY(std::string text,
              read_file(host.parent_group_path(host.cgroups.v2) + "/memory.stat"));
    return number_of(text, "kernel");
  }
  ATOLL_TRY(std::string text, read_file(host.parent_group_path(host.cgroups.v1[kMemory]) +
                                        "/memory.kmem.usage_in_bytes"));
  return number_of("kmem " + text, "kmem");
}

}  // namespace

uint64_t watched_growth(uint64_t asked_bytes) {
  if (asked_bytes != 0) return asked_bytes;
  uint64_t host_bytes = static_cast<uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0l)) *
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::clamp(host_bytes / kShareOfHost, kLeastGrowthBytes, kMostGrowthBytes);
}

Result<KernelMemory> read_kernel_memory(const Host& host) {
  ATOLL_TRY(std::string text, read_file("/proc/meminfo"));
  KernelMemory memory;
  // Stacks and page tables are left out: groups are charged for all of those that matter, and what
  // programs of the host have of them comes and goes by megabytes.
  ATOLL_TRY(uint64_t kibibytes, number_of(text, "SUnreclaim"));
  memory.unreclaimable_bytes = kibibytes * 1024;
  ATOLL_TRY(memory.charged_bytes, read_charged(host));
  return memory;
}

bool was_ended_for_kernel_memory(const Host& host, const SandboxId& id) {
  std::string note = id.string() + "/" + kEndedNote;
  return faccessat(host.isolates.get(), note.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int KernelMemoryGuard::wait_ms() const {
  auto left = std::chrono::ceil<milliseconds>(due_ - steady_clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void KernelMemoryGuard::look_if_due() {
  SteadyTime now = steady_clock::now();
  if (now < due_) return;
  auto memory = read_kernel_memory(host_);
  if (!memory) {
    if (!is_blind_) log_error("kernel memory is not watched", {memory.error()});
    is_blind_ = true;
    due_ = now + kBlindPause;
    return;
  }
  is_blind_ = false;
  std::vector<Suspect> suspects;
  if (watch_.wants_suspects()) suspects = read_suspects();
  for (const WatchOrder& order : watch_.look(now, *memory, suspects)) carry_out(order, *memory);
  due_ = steady_clock::now() + watch_.pause();
}

// One that is being made or removed is none.
std::vector<Suspect> KernelMemoryGuard::read_suspects() const {
  std::vector<Suspect> suspects;
  auto ids = list_records(host_);
  if (!ids) {
    log_warning("suspects of kernel memory", {ids.error()});
    return suspects;
  }
  for (const SandboxId& id : *ids) {
    auto text = read_file(host_.group_path(host_.cgroups.v2, id) + "/run/cpu.stat");
    if (!text) continue;
    auto system_us = number_of(*text, "system_usec");
    if (system_us) suspects.push_back({id, *system_us});
  }
  return suspects;
}

void KernelMemoryGuard::carry_out(const WatchOrder& order, const KernelMemory& memory) {
  const SandboxId& id = order.id;
  switch (order.what) {
    case WatchOrder::What::kStop:
      if (auto stop = ShortStop::try_begin(host_, id)) {
        log_warning("stopped to see who makes kernel memory grow",
                    {{"sandbox", id.view()}, {"uncharged_bytes", memory.uncharged()}});
        stopped_.emplace(id, std::move(*stop));
      } else {
        watch_.pass_over(id);
      }
      return;
    case WatchOrder::What::kGoOn:
      stopped_.erase(id);
      return;
    case WatchOrder::What::kEnd:
      end(id, memory);
      return;
  }
}

void KernelMemoryGuard::end(const SandboxId& id, const KernelMemory& memory) {
  log_error("ending what makes kernel memory grow",
            {{"sandbox", id.view()}, {"uncharged_bytes", memory.uncharged()}});
  stopped_.erase(id);
  // First: whoever sees its end may ask why.
  auto note = open_at(host_.isolates.get(), id.string() + "/" + kEndedNote,
                      O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
  if (!note) log_error("note why", {note.error()});
  auto killed =
      write_file_at(AT_FDCWD, host_.group_path(host_.cgroups.v2, id) + "/cgroup.kill", "1");
  if (!killed) log_error("end it", {killed.error()});
}

}  // namespace atl::warden
