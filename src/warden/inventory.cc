#include "warden/inventory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/id_list.h"
#include "linux/file_tree.h"

namespace atl::warden {
namespace {

// A record that was removed while we waited for its lock is open but has no name any more.
Result<bool> lock_if_alive(int directory, int how = LOCK_EX) {
  while (flock(directory, how) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return Error::system("lock a record");
  }
  struct stat status;
  if (fstat(directory, &status) != 0) return Error::system("stat a record");
  return status.st_nlink > 0;
}

}  // namespace

Result<RecordLock> create_record(const Host& host, const SandboxId& id) {
  std::string name = id.string();
  if (mkdirat(host.isolates.get(), name.c_str(), 0700) != 0) return Error::system("mkdir " + name);
  ATOLL_TRY(Fd directory, open_at(host.isolates.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  ATOLL_TRY(bool alive, lock_if_alive(directory.get()));
  if (!alive) return Error::from_errno("the new record " + name + " was removed", ESTALE);
  return RecordLock{std::move(directory)};
}

namespace {

Result<std::optional<RecordLock>> find_and_lock(const Host& host, const SandboxId& id, int how) {
  auto directory = open_at(host.isolates.get(), id.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory && directory.error().system_errno() == ENOENT) return std::optional<RecordLock>();
  if (!directory) return std::move(directory).error();
  ATOLL_TRY(bool alive, lock_if_alive(directory->get(), how));
  if (!alive) return std::optional<RecordLock>();
  return std::optional(RecordLock{std::move(*directory)});
}

}  // namespace

Result<std::optional<RecordLock>> lock_record(const Host& host, const SandboxId& id) {
  return find_and_lock(host, id, LOCK_EX);
}

Result<std::optional<RecordLock>> try_lock_record(const Host& host, const SandboxId& id) {
  return find_and_lock(host, id, LOCK_EX | LOCK_NB);
}

Result<void> remove_record(const Host& host, const SandboxId& id) {
  return linux::remove_tree(host.isolates.get(), id.string());
}

bool record_exists(const Host& host, const SandboxId& id) {
  return faccessat(host.isolates.get(), id.string().c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<SandboxId>> list_records(const Host& host) {
  return list_ids<SandboxId>(host.run_dir + "/isolates");
}

}  // namespace atl::warden
