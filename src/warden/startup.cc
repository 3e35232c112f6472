#include "warden/startup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "linux/capabilities.h"
#include "linux/devices.h"
#include "linux/masks.h"
#include "linux/mounts.h"
#include "linux/own_tools.h"
#include "linux/program_file.h"
#include "linux/resource_limits.h"
#include "warden/enforcement.h"
#include "warden/freezer.h"
#include "warden/isolate_groups.h"
#include "warden/layer_pool.h"
#include "warden/notary.h"
#include "warden/pool_watch.h"
#include "warden/removal.h"
#include "warden/sandbox_network.h"

namespace atl::warden {
namespace {

// SYS_ADMIN: mounts, namespaces, quotas. SETUID, SETGID: id maps. CHOWN: sockets, groups.
// DAC_OVERRIDE: R/agents is the client's. SYS_PTRACE: the receipt looks at a process of another
// user.
constexpr uint64_t kWardenCapabilities = linux::capability_mask(
    {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_SYS_PTRACE});

}  // namespace

Result<void> enter_own_namespaces() {
  if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return Error::system("leave the host's namespaces");
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return Error::system("become a subreaper");
  return {};
}

Result<linux::LockFile> take_lock(const Host& host) {
  auto lock = linux::LockFile::acquire(host.run_dir + "/warden.lock");
  if (!lock && lock.error().code() == Code::kConflict)
    return Error(Code::kConflict, "another warden serves " + host.run_dir, EBUSY);
  return lock;
}

Result<void> prepare(Host& host, const Options& options) {
  if (auto allowed = linux::allow_open_files(kMaxOpenFiles); !allowed)
    log_warning("the limit of open files cannot be raised", {allowed.error()});
  ATOLL_TRY(host.agent_binary, linux::load_program(options.agent, "atoll-agent"));
  host.notary = options.notary;
  ATOLL_TRY_VOID(prepare_notary(host));
  auto mounted = mount_pool(host);
  if (!mounted) lose_pool(host, mounted.error());
  ATOLL_TRY(host.devices, linux::mount_devices(host.run_dir + "/devices"));
  ATOLL_TRY(host.machine_devices,
            linux::mount_devices(host.run_dir + "/machine-devices", linux::Devices::kWithKvm));
  ATOLL_TRY(host.masks, linux::mount_masks(host.run_dir + "/masks", kResolver));
  ATOLL_TRY(std::string sudo, linux::read_program(options.sudo));
  ATOLL_TRY_VOID(linux::mount_tools(host.run_dir + "/tools", sudo));
  auto cgroups = host.cgroups.check();
  if (cgroups) ATOLL_TRY_VOID(create_parent_groups(host));
  if (!cgroups) log_error("launches will be refused", {cgroups.error()});
  ATOLL_TRY_VOID(remove_strays(host));
  return thaw_without_note(host);
}

Result<void> drop_capabilities() {
  ATOLL_TRY_VOID(linux::limit_bounding_set(kWardenCapabilities));
  return linux::set_capabilities(
      {.effective = kWardenCapabilities, .permitted = kWardenCapabilities});
}

}  // namespace atl::warden
