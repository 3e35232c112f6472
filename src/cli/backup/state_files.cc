#include "cli/backup/state_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/file.h"

namespace atl::cli::backup {
namespace {

using Kind = StateRule::Kind;

constexpr StateRule kRules[] = {
    {kDatabasePath, Kind::kFile, Owner::kDaemon, 0600, 0700},
    {kEpochPath, Kind::kFile, Owner::kDaemon, 0600, 0700},
    {"daemon/local.key", Kind::kFile, Owner::kDaemon, 0600, 0700},
    {"daemon/port.key", Kind::kFile, Owner::kDaemon, 0600, 0700},
    {"daemon/artifacts", Kind::kTree, Owner::kDaemon, 0600, 0700},
    {"daemon/blobs", Kind::kTree, Owner::kDaemon, 0600, 0700},
    {"daemon/outputs", Kind::kTree, Owner::kDaemon, 0600, 0700},
    {"daemon/packs", Kind::kTree, Owner::kDaemon, 0600, 0700},
    {kImagesPath, Kind::kTree, Owner::kRoot, 0644, 0755},
    {"templates", Kind::kTree, Owner::kRoot, 0644, 0755},
    {"receipt.key", Kind::kFile, Owner::kRoot, 0600, 0755},
    {"receipt.pub", Kind::kFile, Owner::kRoot, 0644, 0755},
    {"trusted-keys", Kind::kFile, Owner::kRoot, 0644, 0755},
};

constexpr std::string_view kLeftOut[] = {"backup.lock",
                                         "backup.tmp",
                                         "builder",
                                         "built-in",
                                         "egress",
                                         "daemon/atoll.db-shm",
                                         "daemon/atoll.db-wal",
                                         "daemon/ballast",
                                         "daemon/lost+found",
                                         "daemon/uploads",
                                         "logs",
                                         "pool.btrfs",
                                         "restart.lock",
                                         "run",
                                         "supervisor.lock"};

// Of tools that were interrupted, and locks.
bool is_passing(std::string_view name) { return name.starts_with('.'); }

bool is_beneath(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() + 1 && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

bool is_clean(std::string_view path) {
  while (true) {
    size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (part.empty() || is_passing(part) || part.size() > NAME_MAX ||
        part.find('\0') != part.npos || part.find('\n') != part.npos)
      return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

Result<std::vector<std::string>> names_in(Fd directory, const std::string& path) {
  std::unique_ptr<DIR, CloseDirectory> entries(fdopendir(directory.get()));
  if (!entries) return Error::system("read " + path);
  (void)directory.release();  // closedir() closes it
  std::vector<std::string> names;
  while (dirent* entry = readdir(entries.get()))
    if (!is_passing(entry->d_name)) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

// The files of one rule, by descriptors from the state directory down.
class Walk {
 public:
  Walk(const StateRule& rule, uid_t owner, const TakeFile& take)
      : rule_(rule), owner_(owner), take_(take) {}

  // `name` is in `directory`, `path` beneath the state directory.
  Result<void> visit(int directory, const std::string& name, const std::string& path) {
    // O_NONBLOCK: its owner could have put a FIFO there.
    auto fd = open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!fd && fd.error().system_errno() == ENOENT) return {};
    if (!fd) return std::move(fd).error();
    struct stat status;
    if (fstat(fd->get(), &status) != 0) return Error::system("stat " + path);
    if (status.st_uid != owner_)
      return Error(Code::kDenied, path + " does not belong to uid " + std::to_string(owner_));
    if (S_ISDIR(status.st_mode) && rule_.kind == Kind::kTree)
      return visit_all(std::move(*fd), path);
    bool is_expected = (path == rule_.path) == (rule_.kind == Kind::kFile);
    if (!S_ISREG(status.st_mode) || !is_expected)
      return Error(Code::kInvalid, path + " is not what has to be there");
    int64_t modified = status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    return take_({path, fd->get(), static_cast<uint64_t>(status.st_size), modified});
  }

 private:
  Result<void> visit_all(Fd directory, const std::string& path) {
    ATOLL_TRY(Fd listed, open_at(directory.get(), ".", O_RDONLY | O_DIRECTORY));
    ATOLL_TRY(std::vector<std::string> names, names_in(std::move(listed), path));
    for (const std::string& name : names)
      ATOLL_TRY_VOID(visit(directory.get(), name, path + "/" + name));
    return {};
  }

  const StateRule& rule_;
  uid_t owner_;
  const TakeFile& take_;
};

}  // namespace

const StateRule* find_rule(std::string_view path) {
  if (!is_clean(path)) return nullptr;
  for (const StateRule& rule : kRules)
    if (rule.kind == Kind::kFile ? path == rule.path : is_beneath(path, rule.path)) return &rule;
  return nullptr;
}

const StateRule* find_directory_rule(std::string_view path) {
  for (const StateRule& rule : kRules)
    if (is_beneath(rule.path, path) ||
        (rule.kind == Kind::kTree && (path == rule.path || is_beneath(path, rule.path))))
      return &rule;
  return nullptr;
}

Result<void> for_each_state_file(const Places& places, const Identity& daemon,
                                 const TakeFile& take) {
  ATOLL_TRY(Fd top, open_file(places.state, O_RDONLY | O_DIRECTORY));
  for (const StateRule& rule : kRules) {
    if (rule.path == kDatabasePath || rule.path == kEpochPath) continue;
    std::string path(rule.path);
    size_t slash = path.rfind('/');
    std::string parent = slash == path.npos ? "." : path.substr(0, slash);
    // Its one step from the state directory, which is root's.
    auto directory = open_at(top.get(), parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!directory && directory.error().system_errno() == ENOENT) continue;
    if (!directory) return std::move(directory).error();
    uid_t owner = rule.owner == Owner::kRoot ? geteuid() : daemon.uid;
    Walk walk(rule, owner, take);
    ATOLL_TRY_VOID(walk.visit(directory->get(), path.substr(slash + 1), path));
  }
  return {};
}

Result<std::vector<std::string>> unknown_names(const Places& places) {
  std::vector<std::string> unknown;
  for (std::string prefix : {"", "daemon/"}) {
    std::string path = places.state + "/" + prefix;
    ATOLL_TRY(Fd directory, open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    ATOLL_TRY(std::vector<std::string> names, names_in(std::move(directory), path));
    for (const std::string& name : names) {
      std::string known = prefix + name;
      bool is_left_out =
          std::find(std::begin(kLeftOut), std::end(kLeftOut), known) != std::end(kLeftOut);
      if (!is_left_out && !find_rule(known) && !find_directory_rule(known))
        unknown.push_back(known);
    }
  }
  return unknown;
}

}  // namespace atl::cli::backup
