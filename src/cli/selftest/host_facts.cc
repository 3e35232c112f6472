#include "cli/selftest/host_facts.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <set>
#include <sstream>

#include "base/file.h"

namespace atl::cli::selftest {
namespace {

using std::chrono::nanoseconds;

constexpr size_t kMaxFactBytes = 4 << 20;
// A clock that is kept right by the network moves less than this within one victim.
constexpr nanoseconds kClockTolerance = std::chrono::milliseconds(500);
constexpr const char* kMounts = "/proc/self/mountinfo";
constexpr std::array kFiles = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
                               "/proc/sys/kernel/hostname",     "/proc/sys/kernel/domainname",
                               "/proc/sys/kernel/sysrq",        kMounts};

// The first column: whether a module is used now is not a fact.
std::string module_names(const std::string& modules) {
  std::istringstream lines(modules);
  std::string line, names;
  while (std::getline(lines, line)) names += line.substr(0, line.find(' ')) + "\n";
  return names;
}

std::set<std::string> lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> all;
  for (std::string line; std::getline(lines, line);) all.insert(line);
  return all;
}

// The first line that only one of them has, with its sign.
std::string changed_line(const std::string& before, const std::string& after) {
  std::set<std::string> old_lines = lines_of(before), new_lines = lines_of(after);
  for (const std::string& line : new_lines)
    if (!old_lines.contains(line)) return "+ " + line;
  for (const std::string& line : old_lines)
    if (!new_lines.contains(line)) return "- " + line;
  return "the order of its lines";
}

Result<std::map<std::string, std::string>> read_facts() {
  std::map<std::string, std::string> facts;
  for (const char* path : kFiles) {
    auto text = read_file(path, kMaxFactBytes);
    // A kernel without modules has no modprobe either.
    if (!text && text.error().code() != Code::kNotFound) return std::move(text).error();
    facts[path] = text ? *text : "";
  }
  auto modules = read_file("/proc/modules", kMaxFactBytes);
  facts["the modules of the kernel"] = modules ? module_names(*modules) : "";
  return facts;
}

nanoseconds since_epoch(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

// Of two clocks that are read one after the other: again, if this was interrupted between them.
nanoseconds clock_offset() {
  while (true) {
    nanoseconds before = since_epoch(CLOCK_MONOTONIC);
    nanoseconds wall = since_epoch(CLOCK_REALTIME);
    if (since_epoch(CLOCK_MONOTONIC) - before < kClockTolerance / 10) return wall - before;
  }
}

// There is one number of it for the host. A kernel without it has none to be used up.
bool can_read_asynchronously() {
  unsigned long context = 0;
  if (syscall(SYS_io_setup, 128, &context) != 0) return errno != EAGAIN;
  syscall(SYS_io_destroy, context);
  return true;
}

bool can_fork() {
  pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, nullptr, 0) == child;
}

}  // namespace

Result<HostFacts> HostFacts::read() {
  HostFacts facts;
  ATOLL_TRY(facts.facts_, read_facts());
  facts.clock_offset_ = clock_offset();
  return facts;
}

Result<FactChanges> HostFacts::take_changes() {
  FactChanges changes;
  ATOLL_TRY(auto now, read_facts());
  for (const auto& [name, value] : now) {
    if (facts_[name] == value) continue;
    if (name == kMounts)
      changes.mounts_and_clock.push_back(name + " changed: " + changed_line(facts_[name], value));
    else
      changes.settings.push_back(name + " changed");
  }
  facts_ = std::move(now);
  nanoseconds offset = clock_offset();
  if (std::chrono::abs(offset - clock_offset_) > kClockTolerance)
    changes.mounts_and_clock.push_back("the clock of the host was set");
  clock_offset_ = offset;
  return changes;
}

std::vector<std::string> find_used_up() {
  std::vector<std::string> missing;
  if (!Fd(inotify_init1(IN_CLOEXEC))) missing.push_back("the host gets no inotify instance");
  if (!Fd(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)) && errno != ENOENT)
    missing.push_back("the host gets no terminal");
  if (!Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)))
    missing.push_back("the host gets no socket");
  if (!can_read_asynchronously()) missing.push_back("the host gets no asynchronous I/O");
  if (!can_fork()) missing.push_back("the host gets no process");
  return missing;
}

}  // namespace atl::cli::selftest
