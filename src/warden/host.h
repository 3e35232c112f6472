// Host: what every launch and removal shares. Built once at start-up; read-only afterwards, but for
// the pool, so that the forked helpers can use their copy of it.
//
//   S/images/<digest>.erofs   S/pool.btrfs
//   R/warden.lock  R/warden.sock  R/isolates/<id>/  R/agents/<id>  R/images/<digest>/  R/pool/
//   R/devices/  R/machine-devices/  R/masks/  R/tools/  S/receipt.key  S/receipt.pub
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "linux/btrfs_pool.h"
#include "linux/cgroup_tree.h"
#include "warden/options.h"

namespace atl::warden {

struct Host {
  std::string state_dir;
  std::string run_dir;
  std::string tag;     // tells the groups of several Atolls on one host apart
  std::string notary;  // path of the program
  uid_t client_uid = 0;
  uint64_t kernel_memory_growth = 0;  // see Options
  linux::CgroupTree cgroups;

  Fd run;            // R
  Fd isolates;       // R/isolates
  Fd agents;         // R/agents
  Fd images;         // R/images: mount points
  Fd stored_images;  // S/images
  Fd pool;           // root of the mounted pool; not open: it is not to be had, see pool_watch.h
  int pool_errno = ENODEV;  // why not
  uint64_t pool_bytes = 0;  // of one that has to be made; 0: chosen from the free space
  linux::BtrfsQuotas pool_quotas = linux::BtrfsQuotas::kNone;
  dev_t pool_device = 0;  // the loop device under it
  Fd devices;             // the mount that every isolate gets a clone of as /dev
  Fd machine_devices;     // the same with /dev/kvm; not open: there is none
  Fd masks;               // the mount whose files cover those of /proc
  Fd agent_binary;        // sealed memfd

  linux::PoolPlace pool_place() const { return {state_dir, run_dir + "/pool"}; }
  std::string group_path(const std::string& hierarchy, const SandboxId& id) const {
    return parent_group_path(hierarchy) + "/" + id.string();
  }
  std::string parent_group_path(const std::string& hierarchy) const {
    return hierarchy + "/atoll/" + tag;
  }
};

// Eight hexadecimal digits that stand for a run directory.
std::string run_tag(std::string_view run_dir);

// Makes and opens the directories and finds the cgroups; mounts nothing. Refuses directories that
// another user could change, because root follows names in them.
Result<Host> open_host(const Options& options);

}  // namespace atl::warden
