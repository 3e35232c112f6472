#include "linux/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "linux/kernel_gaps.h"

namespace atl::linux {
namespace {

constexpr int kMaxCapabilities = 64;

uint64_t joined(uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; }
uint32_t low_half(uint64_t mask) { return static_cast<uint32_t>(mask); }
uint32_t high_half(uint64_t mask) { return static_cast<uint32_t>(mask >> 32); }
bool has(uint64_t mask, int capability) { return (mask >> capability & 1) != 0; }

__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

int read_ambient(int capability) {
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0);
}

}  // namespace

Result<CapabilitySets> read_capabilities() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return Error::system("capget");
  CapabilitySets sets;
  sets.effective = joined(data[0].effective, data[1].effective);
  sets.permitted = joined(data[0].permitted, data[1].permitted);
  sets.inheritable = joined(data[0].inheritable, data[1].inheritable);
  for (int capability = 0; capability < kMaxCapabilities; ++capability) {
    int bounding = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (bounding < 0) break;  // EINVAL: past the last one that this kernel knows
    if (bounding == 1) sets.bounding |= capability_mask({capability});
    if (read_ambient(capability) == 1) sets.ambient |= capability_mask({capability});
  }
  return sets;
}

Result<void> change_user_with_capabilities(uid_t id) {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return Error::system("capget");
  uint64_t permitted = joined(data[0].permitted, data[1].permitted);
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return Error::system("keep capabilities");
  if (setresgid(id, id, id) != 0) return Error::system("setresgid");
  if (setresuid(id, id, id) != 0) return Error::system("setresuid");
  return set_capabilities({.effective = permitted, .permitted = permitted});
}

Result<void> limit_bounding_set(uint64_t keep) {
  for (int capability = 0; capability < kMaxCapabilities; ++capability) {
    int bounding = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (bounding < 0) break;
    if (bounding == 0 || has(keep, capability)) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
      return Error::system("drop capability " + std::to_string(capability) + " from bounding set");
  }
  return {};
}

Result<void> set_capabilities(const CapabilitySets& sets) {
  // The kernel lowers ambient with permitted and inheritable, but never below what they still
  // allow.
  // EINVAL: this kernel (gVisor's) has no such set.
  bool cleared = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0;
  if (!cleared && !(errno == EINVAL && has_kernel_gaps()))
    return Error::system("clear ambient capabilities");
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct data[2] = {
      {low_half(sets.effective), low_half(sets.permitted), low_half(sets.inheritable)},
      {high_half(sets.effective), high_half(sets.permitted), high_half(sets.inheritable)}};
  if (syscall(SYS_capset, &header, data) != 0) return Error::system("capset");
  for (int capability = 0; capability < kMaxCapabilities; ++capability) {
    if (!has(sets.ambient, capability)) continue;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      return Error::system("raise ambient capability " + std::to_string(capability));
  }
  return {};
}

}  // namespace atl::linux
