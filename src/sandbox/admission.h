// Admission: what has been promised to sandboxes against what this host may promise. A create takes
// a Reservation, which gives everything back when it is destroyed.
//
// Limits are ceilings, not reservations of real memory, so the budget may exceed what the host has;
// the operator sets by how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "sandbox/limits.h"

namespace atl::sandbox {

inline constexpr uint64_t kNoDiskBudget = UINT64_MAX / 2;  // so that sums do not overflow

struct Budget {
  size_t sandboxes;
  uint64_t memory_bytes;
  uint64_t disk_bytes;  // kNoDiskBudget: only free space counts
  uint64_t free_space_floor_bytes;
  std::string state_directory;  // where free space is looked at
  std::string memory_info = "/proc/meminfo";
};

class Admission;

// What sandboxes may use together.
struct Promised {
  size_t sandboxes = 0;
  uint64_t memory_bytes = 0;
  uint64_t disk_bytes = 0;
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
  // Promises less disk.
  void resize_disk(uint64_t bytes);
  // Promises no memory; resize() does again.
  void release_memory();

 private:
  friend class Admission;
  Admission* admission_ = nullptr;
  size_t sandboxes_ = 0;
  uint64_t memory_bytes_ = 0;
  uint64_t disk_bytes_ = 0;
};

// Outlives its reservations. One thread.
class Admission {
 public:
  explicit Admission(Budget budget) : budget_(std::move(budget)) {}

  Result<Reservation> reserve(const Limits& limits);
  // For what already exists at start: it counts, whatever the budget says.
  Reservation count_existing(const Limits& limits);
  // Disk for what is no sandbox; and for what already exists.
  Result<Reservation> reserve_disk(uint64_t bytes);
  Reservation count_disk(uint64_t bytes);
  // Less than a sixteenth of the host's memory is left: what only waits must go.
  bool memory_is_short() const;
  // How much of what is promised would have to be given back for this to be promised to a sandbox
  // that is new, or that counts already. 0: nothing, or that alone would not do.
  enum class Place : unsigned char { kNew, kHeld };
  uint64_t missing_memory(const Limits& limits, Place place) const;
  const Promised& promised() const { return promised_; }
  const Budget& budget() const { return budget_; }

 private:
  friend class Reservation;
  // Whether that much more can be promised.
  Result<void> check_growth(uint64_t memory_bytes, uint64_t disk_bytes) const;

  Budget budget_;
  Promised promised_;
};

}  // namespace atl::sandbox
