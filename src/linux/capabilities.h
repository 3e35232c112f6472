// The five capability sets of the calling thread, by the raw system calls. A set is a 64-bit mask,
// bit CAP_x. Single-threaded callers only: capabilities belong to a thread, not to a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>

#include "base/result.h"

namespace atl::linux {

constexpr uint64_t capability_mask(std::initializer_list<int> capabilities) {
  uint64_t mask = 0;
  for (int capability : capabilities) mask |= uint64_t{1} << capability;
  return mask;
}

struct CapabilitySets {
  uint64_t effective = 0;
  uint64_t permitted = 0;
  uint64_t inheritable = 0;
  uint64_t bounding = 0;
  uint64_t ambient = 0;
  bool operator==(const CapabilitySets&) const = default;
};

Result<CapabilitySets> read_capabilities();

// Takes a user and group id, keeping the permitted set and making it effective.
Result<void> change_user_with_capabilities(uid_t id);

// Drops from the bounding set all that is not in `keep`. Needs CAP_SETPCAP as long as something is
// to be dropped, so it comes before set_capabilities() and before a change of uid.
Result<void> limit_bounding_set(uint64_t keep);

// Makes effective, permitted, inheritable and ambient exactly what `sets` says; fails if that is
// more than the thread has. `sets.bounding` is not looked at: see limit_bounding_set().
Result<void> set_capabilities(const CapabilitySets& sets);

}  // namespace atl::linux
