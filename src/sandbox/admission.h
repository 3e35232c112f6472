// Admission: what has been promised to sandboxes against what this host may promise. A create takes
// a Reservation, which gives everything back when it is destroyed.
//
// Limits are ceilings, not reservations of real memory, so the budget may exceed what the host has;
// the operator sets by how much. What one sandbox alone could never have here is refused as such. A
// tenant is promised half of the budget at most, so that no one of them takes it from all others;
// the operator's own may take it all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "sandbox/limits.h"
#include "store/tenant.h"

namespace atl::sandbox {

inline constexpr uint64_t kNoDiskBudget = UINT64_MAX / 2;  // so that sums do not overflow

struct Budget {
  size_t sandboxes;
  uint64_t memory_bytes;
  uint64_t disk_bytes;  // kNoDiskBudget: what follows from the size of the pool, if there is one
  uint64_t free_space_floor_bytes;
  std::string state_directory;  // where free space is looked at
  std::string memory_info = "/proc/meminfo";
  uint64_t host_memory_bytes = UINT64_MAX;  // what one sandbox can have at most
};

// Sandboxes seldom fill their disks: as many of 1 GiB as a host may have fit a pool of 64 GiB.
inline constexpr uint64_t kDiskOvercommit = 32;

class Admission;

// What sandboxes may use together.
struct Promised {
  size_t sandboxes = 0;
  uint64_t memory_bytes = 0;
  uint64_t disk_bytes = 0;

  Promised& operator+=(const Promised& more) {
    sandboxes += more.sandboxes;
    memory_bytes += more.memory_bytes;
    disk_bytes += more.disk_bytes;
    return *this;
  }
  Promised& operator-=(const Promised& less) {
    sandboxes -= less.sandboxes;
    memory_bytes -= less.memory_bytes;
    disk_bytes -= less.disk_bytes;
    return *this;
  }
};

class [[nodiscard]] Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { release(); }
  void release();
  // Promises more or less. An error means that the host cannot promise it, and nothing was changed.
  Result<void> resize(const Limits& limits);
  // The same, and from now on it is of this tenant.
  Result<void> resize_for(store::TenantId tenant, const Limits& limits);
  // Promises less disk.
  void resize_disk(uint64_t bytes);
  // Promises no memory; resize() does again.
  void release_memory();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  std::optional<store::TenantId> tenant_;  // whose share it is of
  size_t sandboxes_ = 0;
  uint64_t memory_bytes_ = 0;
  uint64_t disk_bytes_ = 0;
};

// Outlives its reservations. One thread.
class Admission {
 public:
  explicit Admission(Budget budget) : budget_(std::move(budget)) {}

  using Tenant = std::optional<store::TenantId>;  // nothing: the host's own

  Result<Reservation> reserve(const Limits& limits, Tenant tenant = std::nullopt);
  // For what already exists at start: it counts, whatever the budget says.
  Reservation count_existing(const Limits& limits, Tenant tenant = std::nullopt);
  // Disk for what is no sandbox; and for what already exists.
  Result<Reservation> reserve_disk(uint64_t bytes, Tenant tenant = std::nullopt);
  Reservation count_disk(uint64_t bytes, Tenant tenant = std::nullopt);
  // Less than a sixteenth of the host's memory is left: what only waits must go.
  bool memory_is_short() const;
  // How much of what is promised would have to be given back for this to be promised to a sandbox
  // that is new, or that counts already. 0: nothing, or that alone would not do.
  enum class Place : unsigned char { kNew, kHeld };
  uint64_t missing_memory(const Limits& limits, Place place) const;
  const Promised& promised() const { return promised_; }
  const Budget& budget() const { return budget_; }
  uint64_t disk_budget() const;
  // That much, or as much as a sandbox can have here: of what nobody asked for.
  uint64_t fitting_disk(uint64_t bytes) const;

 private:
  friend class Reservation;
  struct Growth {
    uint64_t memory_bytes, disk_bytes;
  };
  // Whether that much more can be promised.
  Result<void> check_growth(Growth growth) const;
  Result<void> check_share(Tenant tenant, Growth growth) const;
  // Whether this host could ever have it. kInvalid with the field.
  Result<void> check_fits(const Limits& limits) const;
  uint64_t pool_bytes() const;  // 0: there is none yet
  void promise(Tenant tenant, const Promised& more);
  void take_back(Tenant tenant, const Promised& less);

  Budget budget_;
  Promised promised_;
  std::map<store::TenantId, Promised> of_tenants_;
  mutable uint64_t pool_bytes_ = 0;
};

}  // namespace atl::sandbox
