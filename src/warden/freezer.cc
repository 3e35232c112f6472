#include "warden/freezer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/file.h"
#include "linux/cgroup_tree.h"
#include "warden/inventory.h"

namespace atl::warden {
namespace {

constexpr int kFreezeTimeoutMs = 30'000;
constexpr const char* kNote = "frozen";

std::string run_group(const Host& host, const SandboxId& id) {
  return host.group_path(host.cgroups.v2, id) + "/run";
}

Result<RecordLock> lock_existing(const Host& host, const SandboxId& id) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return Error::from_errno("there is no isolate " + id.string(), ENOENT);
  return std::move(*record);
}

Result<void> thaw(const Host& host, const SandboxId& id, const RecordLock& record) {
  ATOLL_TRY_VOID(linux::thaw_group(run_group(host, id)));
  crash_point("thaw.group");
  if (unlinkat(record.directory.get(), kNote, 0) != 0 && errno != ENOENT)
    return Error::system("remove the note of a freeze");
  return {};
}

}  // namespace

Result<void> freeze_isolate(const Host& host, const SandboxId& id) {
  ATOLL_TRY(RecordLock record, lock_existing(host, id));
  ATOLL_TRY([[maybe_unused]] Fd note,
            open_at(record.directory.get(), kNote, O_WRONLY | O_CREAT, 0600));
  crash_point("freeze.note");
  auto frozen = linux::freeze_group(run_group(host, id), kFreezeTimeoutMs);
  crash_point("freeze.group");
  if (!frozen) ATOLL_TRY_VOID(thaw(host, id, record));
  return frozen;
}

Result<void> thaw_isolate(const Host& host, const SandboxId& id) {
  ATOLL_TRY(RecordLock record, lock_existing(host, id));
  return thaw(host, id, record);
}

Result<Stillness> Stillness::begin(const Host& host, const SandboxId& id) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return Stillness({}, {});
  ATOLL_TRY_VOID(linux::freeze_group(run_group(host, id), kFreezeTimeoutMs));
  return Stillness(run_group(host, id), std::move(*record));
}

// Until it is asked for.
Stillness::~Stillness() {
  if (!record_.directory) return;
  bool noted = faccessat(record_.directory.get(), kNote, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (!noted) (void)linux::thaw_group(group_);
}

std::optional<ShortStop> ShortStop::try_begin(const Host& host, const SandboxId& id) {
  auto record = try_lock_record(host, id);
  if (!record || !*record) return std::nullopt;
  bool noted = faccessat((*record)->directory.get(), kNote, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  // Before anything is stopped: from here on it goes on whatever happens.
  ShortStop stop(noted ? "" : run_group(host, id), std::move(**record));
  if (noted) return std::nullopt;
  if (!write_file_at(AT_FDCWD, stop.group_ + "/cgroup.freeze", "1")) return std::nullopt;
  return stop;
}

// A helper that was forked meanwhile has a copy of the descriptor, which must not hold the lock.
ShortStop::~ShortStop() {
  if (!record_.directory) return;
  if (!group_.empty()) (void)linux::thaw_group(group_);
  (void)flock(record_.directory.get(), LOCK_UN);
}

Result<void> thaw_without_note(const Host& host) {
  ATOLL_TRY(auto ids, list_records(host));
  for (const SandboxId& id : ids) {
    std::string note = id.string() + "/" + kNote;
    bool noted = faccessat(host.isolates.get(), note.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    auto state = read_file(run_group(host, id) + "/cgroup.freeze");
    if (noted || !state || !state->starts_with('1')) continue;
    ATOLL_TRY_VOID(linux::thaw_group(run_group(host, id)));
  }
  return {};
}

}  // namespace atl::warden
