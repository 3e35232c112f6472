#include "agent/leaf.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "agent/counters.h"
#include "base/file.h"

namespace atl::agent {
namespace {

constexpr uint64_t kTickMicros = 10'000;  // of /proc, whatever the kernel's own are
constexpr int kFirstTime = 12;            // field behind the name

// "<pid> (<name>) <state> …": user, system, and those of children that it has waited for.
LeafTimes times_of(pid_t pid) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  size_t name_end = text ? text->rfind(") ") : std::string::npos;
  if (name_end == std::string::npos) return {};
  std::string_view rest = std::string_view(*text).substr(name_end + 2);
  uint64_t fields[4] = {};
  for (int field = 1; field < kFirstTime + 4 && !rest.empty(); ++field) {
    if (field >= kFirstTime) fields[field - kFirstTime] = parse_count(rest).value_or(0);
    rest.remove_prefix(std::min(rest.size(), std::min(rest.find(' '), rest.size()) + 1));
  }
  return {(fields[0] + fields[2]) * kTickMicros, (fields[1] + fields[3]) * kTickMicros};
}

}  // namespace

Result<void> Leaf::create() const {
  std::string name = std::to_string(number_);
  if (mkdirat(parent_, name.c_str(), 0755) != 0) return Error::system("mkdir cgroup " + name);
  return {};
}

Result<void> Leaf::limit_processes(uint32_t most) const {
  return write_file_at(parent_, std::to_string(number_) + "/pids.max", std::to_string(most));
}

Result<Fd> Leaf::open_directory() const {
  return open_at(parent_, std::to_string(number_), O_PATH | O_DIRECTORY);
}

Result<void> Leaf::kill() const {
  std::string name = std::to_string(number_);
  auto killed = write_file_at(parent_, name + "/cgroup.kill", "1");
  if (killed || killed.error().system_errno() != ENOENT) return killed;
  // gVisor's groups have no such file. None of them can fork any more once there is no room.
  ATOLL_TRY_VOID(limit_processes(0));
  ATOLL_TRY(std::vector<pid_t> members, processes());
  for (pid_t pid : members) (void)::kill(pid, SIGKILL);
  return {};
}

Result<void> Leaf::freeze() const {
  return write_file_at(parent_, std::to_string(number_) + "/cgroup.freeze", "1");
}

Result<void> Leaf::thaw() const {
  return write_file_at(parent_, std::to_string(number_) + "/cgroup.freeze", "0");
}

Result<std::vector<pid_t>> Leaf::processes() const {
  ATOLL_TRY(std::string text, read("cgroup.procs"));
  std::vector<pid_t> all;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    pid_t pid = 0;
    auto [end, code] = std::from_chars(at, text.data() + text.size(), pid);
    if (code == std::errc() && pid > 0) all.push_back(pid);
    at = end + 1;
  }
  return all;
}

std::optional<LeafTimes> Leaf::times() const {
  auto text = read("cpu.stat");
  auto user = text ? find_count(*text, "user_usec") : std::nullopt;
  auto system = text ? find_count(*text, "system_usec") : std::nullopt;
  if (!user || !system) return std::nullopt;
  return LeafTimes{*user, *system};
}

LeafTimes Leaf::live_times() const {
  LeafTimes sum = {};
  auto members = processes();
  if (!members) return sum;
  for (pid_t pid : *members) {
    LeafTimes own = times_of(pid);
    sum.user_us += own.user_us;
    sum.system_us += own.system_us;
  }
  return sum;
}

Leaf::Removal Leaf::remove() const {
  std::string name = std::to_string(number_);
  // gVisor's kernel, whose groups have no such file, removes one with processes in it.
  if (faccessat(parent_, "cgroup.events", F_OK, 0) != 0) {
    auto members = processes();
    if (members && !members->empty()) return Removal::kPopulated;
  }
  if (unlinkat(parent_, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
    return Removal::kRemoved;
  auto events = read_file_at(parent_, name + "/cgroup.events");
  bool populated = events.ok() && events->find("populated 1") != std::string::npos;
  return populated ? Removal::kPopulated : Removal::kBusy;
}

Result<std::string> Leaf::read(const char* file) const {
  return read_file_at(parent_, std::to_string(number_) + "/" + file);
}

Result<Fd> Leaf::open_events() const {
  return open_at(parent_, std::to_string(number_) + "/cgroup.events", O_RDONLY);
}

}  // namespace atl::agent
