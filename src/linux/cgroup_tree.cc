#include "linux/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/file.h"

namespace atl::linux {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBusyLimit{2000};
constexpr useconds_t kBusyPauseUs = 500;
constexpr int kMaxGroupDepth = 8;
constexpr int kMaxGaps = 1000;

size_t index(Controller controller) { return static_cast<size_t>(controller); }

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    size_t end = text.find_first_of(" \n");
    if (text.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

std::string find_v2(const std::vector<MountInfo>& mounts) {
  for (const MountInfo& mount : mounts)
    if (mount.file_system == "cgroup2" && mount.root == "/") return mount.mount_point;
  return {};
}

Result<void> remove_directory(int parent, const std::string& name) {
  auto deadline = steady_clock::now() + kBusyLimit;
  while (true) {
    if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY || steady_clock::now() > deadline) return Error::system("rmdir " + name);
    usleep(kBusyPauseUs);
  }
}

Result<void> remove_below(int parent, const std::string& name, int depth) {
  if (depth > kMaxGroupDepth) return Error::from_errno("rmdir " + name, ELOOP);
  int opened = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0 && errno == ENOENT) return {};
  if (opened < 0) return Error::system("open " + name);
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(opened), closedir);
  if (!directory) return Error::system("read directory " + name);
  while (dirent* entry = readdir(directory.get())) {
    std::string_view child = entry->d_name;
    if (entry->d_type != DT_DIR || child == "." || child == "..") continue;
    ATOLL_TRY_VOID(remove_below(dirfd(directory.get()), std::string(child), depth + 1));
  }
  return remove_directory(parent, name);
}

// Until cgroup.events of the open group has the line.
Result<void> await_event(int group, std::string_view line, int timeout_ms) {
  ATOLL_TRY(Fd events, open_at(group, "cgroup.events", O_RDONLY));
  auto deadline = steady_clock::now() + milliseconds(timeout_ms);
  while (true) {
    char text[256];
    ssize_t count = pread(events.get(), text, sizeof text, 0);
    if (count < 0) return Error::system("read cgroup.events");
    if (std::string_view(text, static_cast<size_t>(count)).find(line) != std::string_view::npos)
      return {};
    auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0)
      return Error(Code::kTimeout, "waited in vain for " + std::string(line), ETIMEDOUT);
    pollfd waiting = {.fd = events.get(), .events = POLLPRI, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(left)) < 0 && errno != EINTR)
      return Error::system("poll cgroup.events");
  }
}

}  // namespace

std::string_view controller_name(Controller controller) {
  static constexpr std::string_view kNames[] = {"memory", "cpu", "pids"};
  return kNames[index(controller)];
}

bool CgroupTree::has(Controller controller) const {
  return in_v2[index(controller)] || !v1[index(controller)].empty();
}

bool CgroupTree::uses_v1() const {
  for (Controller controller : kControllers)
    if (!v1[index(controller)].empty()) return true;
  return false;
}

Result<void> CgroupTree::check() const {
  if (v2.empty()) return Error(Code::kUnsupported, "no cgroup v2 tree is mounted");
  for (Controller controller : kControllers) {
    if (has(controller)) continue;
    return Error(
        Code::kUnsupported,
        "the cgroup controller " + std::string(controller_name(controller)) + " is not available");
  }
  return {};
}

CgroupTree find_cgroups(const std::vector<MountInfo>& mounts, std::string_view v2_controllers) {
  CgroupTree tree;
  tree.v2 = find_v2(mounts);
  tree.io_in_v2 = !tree.v2.empty() && has_word(v2_controllers, "io");
  for (Controller controller : kControllers) {
    std::string_view name = controller_name(controller);
    tree.in_v2[index(controller)] = !tree.v2.empty() && has_word(v2_controllers, name);
    if (tree.in_v2[index(controller)]) continue;
    for (const MountInfo& mount : mounts) {
      if (mount.file_system != "cgroup" || !has_option(mount.super_options, name)) continue;
      tree.v1[index(controller)] = mount.mount_point;
      break;
    }
  }
  return tree;
}

Result<CgroupTree> read_cgroups() {
  ATOLL_TRY(std::vector<MountInfo> mounts, read_mountinfo());
  std::string v2 = find_v2(mounts);
  if (v2.empty()) return find_cgroups(mounts, "");
  ATOLL_TRY(std::string controllers, read_file(v2 + "/cgroup.controllers"));
  return find_cgroups(mounts, controllers);
}

std::string v1_group_of(std::string_view groups, Controller controller) {
  while (!groups.empty()) {
    std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    size_t first = line.find(':');
    size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (names.find("," + std::string(controller_name(controller)) + ",") != names.npos)
      return std::string(line.substr(second + 1));
  }
  return "";
}

Result<void> make_nested_group(const std::string& parent, const std::string& name) {
  std::string path = parent + "/" + name;
  for (int attempt = 0; attempt < kMaxGaps; ++attempt) {
    if (mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::system("mkdir " + parent);
    if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
    if (errno != ENOENT) break;
  }
  return Error::system("mkdir " + path);
}

Result<void> remove_group(const std::string& path) { return remove_below(AT_FDCWD, path, 0); }

Result<void> remove_empty_group(const std::string& path) {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT || errno == EBUSY || errno == ENOTEMPTY)
    return {};
  return Error::system("rmdir " + path);
}

Result<void> kill_group(const std::string& path, int timeout_ms) {
  int opened = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0 && errno == ENOENT) return {};
  Fd group(opened);
  if (!group) return Error::system("open " + path);
  ATOLL_TRY_VOID(write_file_at(group.get(), "cgroup.kill", "1"));
  auto ended = await_event(group.get(), "populated 0\n", timeout_ms);
  if (!ended) return std::move(ended).error().with_context("end the processes of " + path);
  return {};
}

Result<void> freeze_group(const std::string& path, int timeout_ms) {
  ATOLL_TRY(Fd group, open_file(path, O_PATH | O_DIRECTORY));
  ATOLL_TRY_VOID(write_file_at(group.get(), "cgroup.freeze", "1"));
  auto frozen = await_event(group.get(), "frozen 1\n", timeout_ms);
  if (frozen) return {};
  ATOLL_TRY_VOID(thaw_group(path));
  return std::move(frozen).error().with_context("freeze " + path);
}

Result<void> thaw_group(const std::string& path) {
  return write_file_at(AT_FDCWD, path + "/cgroup.freeze", "0");
}

}  // namespace atl::linux
