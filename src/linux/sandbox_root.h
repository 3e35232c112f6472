// What every sandbox's root has and no image need bring: devices, /proc, /run, an empty /sys, the
// resolver's file, the toolbox; and the way into it. `root` is the open directory of an attached
// mount, on which targets are found without following links of the image.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// A clone of the mount that linux/devices.h made, with terminals and shared memory of its own.
Result<void> attach_devices(int root, int devices);
// Gives the mount.
Result<Fd> attach_proc(int root);
// A new and empty /run, where no image can have put anything in the way, with our programs in
// /run/atoll/bin. Gives /run/atoll.
Result<Fd> attach_run(int root, int tools);
// `masks` is a clone of the mount that linux/masks.h made, attached at the path; the file of the
// boot id may be none, see there.
struct AttachedMasks {
  int mount;
  std::string path;
  std::string boot_id;
};
Result<void> mask_kernel_files(int root, int proc, const AttachedMasks& masks);
Result<void> attach_resolver(int root, const AttachedMasks& masks);
// Where /opt is something else there is no toolbox: contexts do without, and say so.
Result<void> attach_toolbox(int root, int toolbox);

// Makes it the root of this process, in a mount namespace of its own, and detaches the old one.
Result<void> pivot_into(int root);

// The socket of sudo in /run/atoll, which everybody inside may connect to.
Result<Fd> listen_for_sudo(int run_atoll);

}  // namespace atl::linux
