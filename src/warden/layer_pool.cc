#include "warden/layer_pool.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "linux/btrfs_file.h"
#include "linux/file_tree.h"
#include "linux/layer_parts.h"
#include "linux/loop_device.h"
#include "linux/mounts.h"
#include "linux/quota_groups.h"
#include "linux/root_file.h"
#include "linux/subvolume.h"

namespace atl::warden {
namespace {

// The blocks of removed layers are freed by a thread that wakes after a commit, so the interval is
// how long they stay taken. With the kernel's 30 s, thousands of dead layers would pile up in a
// busy pool.
constexpr const char* kPoolOptions = "commit=5";

std::string pool_file(const Host& host) { return host.state_dir + "/pool.btrfs"; }
std::string pool_mount(const Host& host) { return host.run_dir + "/pool"; }

Result<void> create_pool_file(const Host& host, uint64_t bytes) {
  if (bytes == 0) {
    ATOLL_TRY(uint64_t half, linux::half_of_free_space(host.state_dir));
    bytes = std::min(half, kMaxDefaultPoolBytes) / 4096 * 4096;
  }
  if (bytes < kMinPoolBytes)
    return Error(Code::kExhausted, "the layer pool would have less than 256 MiB", ENOSPC);
  ATOLL_TRY_VOID(linux::create_btrfs_file(pool_file(host), bytes));
  log_info("layer pool made", {{"file", pool_file(host)}, {"bytes", bytes}});
  return {};
}

Result<Fd> open_pool_file(const Host& host) {
  ATOLL_TRY(Fd state, open_file(host.state_dir, O_PATH | O_DIRECTORY));
  return linux::open_root_file(state.get(), "pool.btrfs", O_RDWR);
}

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

bool pool_exists(const Host& host) { return access(pool_file(host).c_str(), F_OK) == 0; }

Result<void> mount_pool(Host& host, uint64_t bytes) {
  if (!pool_exists(host)) ATOLL_TRY_VOID(create_pool_file(host, bytes));
  ATOLL_TRY(Fd file, open_pool_file(host));
  ATOLL_TRY(auto device, linux::share_loop_device(file.get(), linux::LoopAccess::kReadWrite));
  ATOLL_TRY_VOID(make_directory(pool_mount(host), 0700));
  ATOLL_TRY_VOID(linux::mount_btrfs(device.path, pool_mount(host), kPoolOptions));
  ATOLL_TRY(host.pool, open_file(pool_mount(host), O_RDONLY | O_DIRECTORY));
  struct stat status;
  if (fstat(device.fd.get(), &status) != 0) return Error::system("stat " + device.path);
  host.pool_device = status.st_rdev;
  auto quotas = linux::enable_btrfs_quotas(host.pool.get());
  host.pool_quotas = quotas ? *quotas : linux::BtrfsQuotas::kNone;
  if (!quotas) log_error("launches will be refused", {quotas.error()});
  return linux::remove_stale_quota_groups(host.pool.get());
}

Result<void> unmount_pool(Host& host) {
  host.pool.reset();
  ATOLL_TRY_VOID(linux::unmount_if_mounted(pool_mount(host)));
  if (!pool_exists(host)) return {};
  ATOLL_TRY(Fd file, open_pool_file(host));
  return linux::await_detached(file.get());
}

Result<void> check_pool(const Host& host) {
  if (!host.pool) return Error::from_errno("the layer pool is not mounted", ENODEV);
  ATOLL_TRY(uint64_t magic, linux::file_system_magic(pool_mount(host)));
  if (magic != linux::kBtrfsMagic)
    return Error::from_errno("the layer pool is not mounted", ENODEV);
  return {};
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
  if (!host.pool) return {};
  return linux::remove_subvolume(host.pool.get(), kept_name(id));
}

Result<void> keep_layer(const Host& host, const SandboxId& id) {
  return linux::rename_subvolume(host.pool.get(), id.string(), kept_name(id));
}

Result<void> remove_layer(const Host& host, const SandboxId& id) {
  if (!host.pool) return {};  // there is no pool, so there is no layer
  return linux::remove_subvolume(host.pool.get(), id.string());
}

}  // namespace atl::warden
