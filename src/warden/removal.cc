#include "warden/removal.h"

#include <fcntl.h>
#include <unistd.h>

#include <set>

#include "base/crash_point.h"
#include "base/id_list.h"
#include "base/log.h"
#include "warden/images.h"
#include "warden/isolate_groups.h"
#include "warden/layer_pool.h"
#include "warden/uid_ranges.h"

namespace atl::warden {
namespace {

Result<void> remove_listener(const Host& host, const SandboxId& id) {
  std::string name = id.string();
  if (unlinkat(host.agents.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("unlink socket " + name);
  return {};
}

// Processes first: they use all the rest.
Result<void> free_what_it_held(const Host& host, const SandboxId& id) {
  crash_point("remove.begun");
  ATOLL_TRY_VOID(remove_groups(host, id));
  crash_point("remove.groups");
  ATOLL_TRY_VOID(remove_layer(host, id));
  crash_point("remove.layer");
  return remove_listener(host, id);
}

std::vector<std::string> group_directories(const Host& host) {
  std::vector<std::string> directories;
  if (!host.cgroups.v2.empty()) directories.push_back(host.parent_group_path(host.cgroups.v2));
  for (const std::string& hierarchy : host.cgroups.v1)
    if (!hierarchy.empty()) directories.push_back(host.parent_group_path(hierarchy));
  return directories;
}

Result<std::set<SandboxId>> find_in(const std::vector<std::string>& directories) {
  std::set<SandboxId> found;
  for (const std::string& directory : directories) {
    ATOLL_TRY(auto ids, list_ids<SandboxId>(directory));
    found.insert(ids.begin(), ids.end());
  }
  return found;
}

void mount_to_remove(Host& host) {
  if (!linux::pool_exists(host.pool_place())) return;
  auto mounted = unmount_pool(host);
  if (mounted) mounted = mount_pool(host);
  if (!mounted) log_warning("layers are left for the next start", {mounted.error()});
}

}  // namespace

Result<void> remove_isolate(const Host& host, const SandboxId& id) {
  ATOLL_TRY(auto record, lock_record(host, id));
  if (!record) return {};
  return remove_isolate(host, id, std::move(*record));
}

Result<void> remove_isolate(const Host& host, const SandboxId& id, RecordLock record) {
  ATOLL_TRY_VOID(free_what_it_held(host, id));
  ATOLL_TRY_VOID(free_uid_range(host, id, record.directory.get()));
  crash_point("remove.uids");
  return remove_record(host, id);
}

Result<void> end_all_isolates(const Host& host) {
  ATOLL_TRY(std::set<SandboxId> found, find_in(group_directories(host)));
  for (const SandboxId& id : found) ATOLL_TRY_VOID(remove_groups(host, id));
  return {};
}

Result<void> remove_strays(const Host& host) {
  std::vector<std::string> directories = group_directories(host);
  directories.insert(directories.end(), {host.run_dir + "/pool", host.run_dir + "/agents"});
  ATOLL_TRY(std::set<SandboxId> found, find_in(directories));
  for (const SandboxId& id : found) {
    if (record_exists(host, id)) continue;
    log_warning("removing what has no record", {{"sandbox", id.view()}});
    ATOLL_TRY_VOID(free_what_it_held(host, id));
  }
  return free_stale_uid_ranges(host);
}

Result<void> remove_all(Host& host) {
  ATOLL_TRY_VOID(end_all_isolates(host));
  mount_to_remove(host);
  ATOLL_TRY(auto ids, list_records(host));
  for (const SandboxId& id : ids) ATOLL_TRY_VOID(remove_isolate(host, id));
  ATOLL_TRY_VOID(remove_strays(host));
  ATOLL_TRY_VOID(remove_empty_registry());
  ATOLL_TRY_VOID(remove_parent_groups(host));
  ATOLL_TRY_VOID(unmount_images(host));
  if (unlinkat(host.run.get(), "warden.sock", 0) != 0 && errno != ENOENT)
    return Error::system("unlink warden.sock");
  return unmount_pool(host);
}

}  // namespace atl::warden
