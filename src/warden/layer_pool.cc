#include "warden/layer_pool.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/btrfs_pool.h"
#include "linux/file_tree.h"
#include "linux/layer_parts.h"
#include "linux/subvolume.h"

namespace atl::warden {
namespace {

std::string kept_name(const SandboxId& id) { return "p" + id.string().substr(1); }

std::string mark_of(const Request& request) {
  if (request.guest.memory_bytes == 0) return {};
  return agent::is_sentry(request.guest.kind) ? "sentry" : "machine";
}

// An overlay does not take what another one left that was `volatile`, or was not ended.
Result<void> renew_layer(const Host& host, const SandboxId& id, uint64_t limit_bytes) {
  ATOLL_TRY(Fd layer, open_layer(host, id));
  ATOLL_TRY_VOID(linux::set_subvolume_limit(layer.get(), limit_bytes));
  return linux::remove_tree(layer.get(), "work");
}

}  // namespace

Result<void> mount_pool(Host& host) {
  ATOLL_TRY_VOID(linux::mount_pool(host.pool_place(), host.pool_bytes));
  return open_pool(host);
}

Result<void> open_pool(Host& host) {
  ATOLL_TRY(linux::MountedPool pool, linux::open_pool(host.pool_place()));
  host.pool_device = pool.device;
  host.pool_quotas = pool.quotas;
  host.pool = std::move(pool.root);
  return {};
}

Result<void> unmount_pool(Host& host) {
  host.pool.reset();
  return linux::unmount_pool(host.pool_place());
}

Result<void> check_pool(const Host& host) {
  if (!host.pool) return Error::from_errno("the layer pool is not mounted", host.pool_errno);
  return linux::check_pool(host.pool_place());
}

Result<void> create_layer(const Host& host, const SandboxId& id, const Request& request) {
  std::string name = request.keeps_layer != 0 ? kept_name(id) : id.string();
  int pool = host.pool.get();
  bool kept = request.keeps_layer != 0 && faccessat(pool, name.c_str(), F_OK, 0) == 0;
  bool empty = !kept && request.snapshot_id[0] == 0;
  if (kept) {
    ATOLL_TRY_VOID(renew_layer(host, id, request.disk_bytes));
  } else if (empty) {
    ATOLL_TRY_VOID(linux::create_subvolume(pool, name, request.disk_bytes));
  } else {
    std::string snapshot(request.snapshot_id.data(), request.snapshot_id.size());
    ATOLL_TRY(Fd source, open_at(pool, snapshot, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    auto writable = linux::SubvolumeAccess::kWritable;
    ATOLL_TRY_VOID(linux::snapshot_subvolume(source.get(), pool, name, writable));
    ATOLL_TRY_VOID(renew_layer(host, id, request.disk_bytes));
  }
  ATOLL_TRY(Fd layer, open_layer(host, id));
  auto origin = empty ? linux::LayerOrigin::kNew : linux::LayerOrigin::kSnapshot;
  return linux::make_layer_parts(layer.get(), mark_of(request), request.disk_bytes, origin);
}

std::string layer_name(const Host& host, const SandboxId& id) {
  bool kept = faccessat(host.pool.get(), id.string().c_str(), F_OK, 0) != 0;
  return kept ? kept_name(id) : id.string();
}

Result<Fd> open_layer(const Host& host, const SandboxId& id) {
  return open_at(host.pool.get(), layer_name(host, id), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> remove_kept_layer(const Host& host, const SandboxId& id) {
  ATOLL_TRY_VOID(check_pool(host));
  return linux::remove_subvolume(host.pool.get(), kept_name(id));
}

Result<void> keep_layer(const Host& host, const SandboxId& id) {
  return linux::rename_subvolume(host.pool.get(), id.string(), kept_name(id));
}

Result<void> remove_layer(const Host& host, const SandboxId& id) {
  if (!check_pool(host)) return {};
  auto removed = linux::remove_subvolume(host.pool.get(), id.string());
  if (!removed && !check_pool(host)) return {};  // it is read-only since
  return removed;
}

}  // namespace atl::warden
