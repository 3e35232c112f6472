#include "cli/state_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/file.h"

namespace atl::cli {
namespace {

constexpr Identity kRoot{0, 0};

// Parents of the state directory that do not exist yet; mkdir -p.
Result<void> make_parents(const std::string& path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  struct stat status;
  if (parent.empty() || parent == path || stat(parent.c_str(), &status) == 0) return {};
  ATOLL_TRY_VOID(make_parents(parent));
  return make_directory(parent, 0755);
}

// The state directory may be any directory the administrator names, so its owner and mode are
// checked, never changed: a mistyped --state-dir /tmp must not close /tmp to everybody.
Result<void> make_top(const std::string& path) {
  ATOLL_TRY_VOID(make_parents(path));
  ATOLL_TRY_VOID(make_directory(path, 0755));
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return Error::system("stat " + path);
  if (!S_ISDIR(status.st_mode)) return Error(Code::kInvalid, path + " is not a directory");
  if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Code::kDenied, path + " must belong to root and be writable by nobody else");
  return {};
}

Result<void> check_reachable(const std::string& path, const Identity& daemon) {
  for (auto at = std::filesystem::path(path); at.has_relative_path(); at = at.parent_path()) {
    struct stat status;
    if (stat(at.c_str(), &status) != 0) return Error::system("stat " + at.string());
    unsigned needed = status.st_uid == daemon.uid   ? S_IXUSR
                      : status.st_gid == daemon.gid ? S_IXGRP
                                                    : S_IXOTH;
    if ((status.st_mode & needed) == 0)
      return Error(Code::kDenied, std::string("user ") + kDaemonUser + " cannot enter " +
                                      at.string() + ": choose another --state-dir");
  }
  return {};
}

Result<void> make_owned(const std::string& path, const Identity& owner, unsigned mode) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::system("mkdir " + path);
  ATOLL_TRY(Fd fd, open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (fchown(fd.get(), owner.uid, owner.gid) != 0) return Error::system("chown " + path);
  if (fchmod(fd.get(), mode) != 0) return Error::system("chmod " + path);
  return {};
}

Result<Identity> find_identity(const char* user) {
  const passwd* entry = getpwnam(user);
  if (entry == nullptr)
    return Error(Code::kNotFound, std::string("there is no user ") + user +
                                      ": run tools/setup, or useradd --system --no-create-home " +
                                      user);
  if (entry->pw_uid == 0)
    return Error(Code::kDenied, std::string("user ") + user + " must not be root");
  return Identity{entry->pw_uid, entry->pw_gid};
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

Result<void> remove_contents(Fd directory, const std::string& path) {
  struct stat here;
  if (fstat(directory.get(), &here) != 0) return Error::system("stat " + path);
  std::unique_ptr<DIR, CloseDirectory> entries(fdopendir(directory.get()));
  if (!entries) return Error::system("read " + path);
  int fd = directory.release();  // closedir() closes it
  while (dirent* entry = readdir(entries.get())) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    std::string child = path + "/" + entry->d_name;
    struct stat status;
    if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return Error::system("stat " + child);
    if (status.st_dev != here.st_dev)
      return Error(Code::kConflict, child + " is a mount point: not removed");
    if (S_ISDIR(status.st_mode)) {
      ATOLL_TRY(Fd inner, open_at(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      ATOLL_TRY_VOID(remove_contents(std::move(inner), child));
    }
    if (unlinkat(fd, entry->d_name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) != 0)
      return Error::system("remove " + child);
  }
  return {};
}

}  // namespace

Result<Identity> find_daemon_identity() { return find_identity(kDaemonUser); }

Result<Identity> find_egress_identity() {
  ATOLL_TRY(Identity egress, find_identity(kEgressUser));
  ATOLL_TRY(Identity daemon, find_identity(kDaemonUser));
  if (egress.uid == daemon.uid)
    return Error(Code::kDenied, std::string("user ") + kEgressUser + " must not be " + kDaemonUser);
  return egress;
}

Result<void> make_egress_directories(const Places& places, const Identity& egress,
                                     const Identity& daemon) {
  ATOLL_TRY_VOID(make_owned(egress_state(places), egress, 0700));
  // Nobody else may stand in the queues of its sockets.
  return make_owned(egress_run(places), {egress.uid, daemon.gid}, 0750);
}

Result<void> make_state_directories(const Places& places, const Identity& daemon) {
  ATOLL_TRY_VOID(make_top(places.state));
  ATOLL_TRY_VOID(check_reachable(places.state, daemon));
  ATOLL_TRY_VOID(make_owned(places.daemon_state(), daemon, 0700));
  ATOLL_TRY_VOID(make_owned(epoch_state(places), daemon, 0700));
  ATOLL_TRY_VOID(make_owned(places.images(), kRoot, 0755));
  ATOLL_TRY_VOID(make_owned(places.templates(), kRoot, 0755));
  return make_owned(places.logs(), kRoot, 0750);
}

Result<void> make_run_directories(const Places& places, const Identity& daemon) {
  ATOLL_TRY_VOID(make_owned(places.run, kRoot, 0755));
  ATOLL_TRY_VOID(check_reachable(places.run, daemon));
  // Also for a supervisor that was started by a version that had none.
  ATOLL_TRY_VOID(make_owned(epoch_state(places), daemon, 0700));
  ATOLL_TRY_VOID(make_owned(places.agents(), daemon, 0700));
  return make_owned(places.daemon_run(), daemon, 0755);
}

Result<void> remove_tree(const std::string& path) {
  auto directory = open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory && directory.error().system_errno() == ENOENT) return {};
  if (!directory) return std::move(directory).error();
  ATOLL_TRY_VOID(remove_contents(std::move(*directory), path));
  if (rmdir(path.c_str()) != 0) return Error::system("remove " + path);
  return {};
}

}  // namespace atl::cli
