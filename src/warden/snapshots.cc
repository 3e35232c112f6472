#include "warden/snapshots.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

#include "base/crash_point.h"
#include "base/file.h"
#include "linux/layer_parts.h"
#include "linux/subvolume.h"
#include "warden/freezer.h"
#include "warden/layer_pool.h"

namespace atl::warden {

SnapshotId snapshot_of(const Request& request) {
  auto id = SnapshotId::parse({request.snapshot_id.data(), request.snapshot_id.size()});
  ATOLL_CHECK(id.has_value());
  return *id;
}

Result<Cut> cut_snapshot(const Host& host, const Request& request) {
  auto id = SandboxId::parse({request.sandbox_id.data(), request.sandbox_id.size()});
  ATOLL_CHECK(id.has_value());
  ATOLL_TRY(Fd layer, open_layer(host, *id));
  // Most of what is to be written is written while everything still runs.
  if (syncfs(layer.get()) != 0) return Error::system("sync the layer pool");
  auto begin = std::chrono::steady_clock::now();
  {
    ATOLL_TRY([[maybe_unused]] Stillness still, Stillness::begin(host, *id));
    crash_point("snapshot.frozen");
    ATOLL_TRY_VOID(linux::snapshot_subvolume(layer.get(), host.pool.get(),
                                             snapshot_of(request).string(),
                                             linux::SubvolumeAccess::kReadOnly));
    crash_point("snapshot.cut");
  }
  auto frozen = std::chrono::steady_clock::now() - begin;
  ATOLL_TRY(uint64_t written, linux::read_subvolume_usage(layer.get()));
  ATOLL_TRY_VOID(linux::make_room_for_disk(layer.get(), written));
  bool shares = host.pool_quotas == linux::BtrfsQuotas::kSimple;
  return Cut{.held_bytes = written + (shares ? request.inherited_bytes : 0),
             .frozen_us = static_cast<uint64_t>(frozen / std::chrono::microseconds(1))};
}

Result<void> remove_snapshot(const Host& host, const SnapshotId& id) {
  crash_point("snapshot.remove");
  return linux::remove_subvolume(host.pool.get(), id.string());
}

}  // namespace atl::warden
