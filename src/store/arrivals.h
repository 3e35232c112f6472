// Arrivals: what clients are sending, and how many bytes of all of it are on disk: of one, of a
// tenant, of the host. Who sends many at once is refused before the disk is full. Files have no
// name until they are whole.
//
// May be used by several threads, each of one arrival.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "store/tenant.h"

namespace atl::store {

struct ArrivalLimits {
  uint64_t of_one, of_tenant, of_host;  // bytes
};

struct ArrivalCounts;

// What one client has sent so far; counted while this lives.
class ArrivalCount {
 public:
  ArrivalCount(ArrivalCount&&) noexcept = default;
  ~ArrivalCount();

  // Before they are written. kInvalid with reason archive_too_large, kExhausted with reason
  // too_many_uploads.
  Result<void> add(uint64_t bytes);
  // It has arrived, and counts no more.
  void forget();

 private:
  friend class ArrivalBounds;
  ArrivalCount(std::shared_ptr<ArrivalCounts> counts, TenantId tenant)
      : counts_(std::move(counts)), tenant_(tenant) {}

  std::shared_ptr<ArrivalCounts> counts_;  // null: moved from
  TenantId tenant_;
  uint64_t bytes_ = 0;
};

class ArrivalBounds {
 public:
  explicit ArrivalBounds(const ArrivalLimits& limits);
  ArrivalCount begin(TenantId tenant) const { return ArrivalCount(counts_, tenant); }

 private:
  std::shared_ptr<ArrivalCounts> counts_;
};

// One file. Destroyed before it is taken it leaves nothing.
class Arrival {
 public:
  Arrival(ArrivalCount count, Fd file) : count_(std::move(count)), file_(std::move(file)) {}

  // As ArrivalCount::add, and kExhausted with reason disk_full.
  Result<void> write(std::string_view bytes);
  // Whole: it is the caller's, and counts no more.
  Fd take();

 private:
  ArrivalCount count_;
  Fd file_;
};

class Arrivals {
 public:
  Arrivals(std::string directory, const ArrivalLimits& limits)
      : directory_(std::move(directory)), bounds_(limits) {}
  Result<Arrival> begin(TenantId tenant) const;

 private:
  std::string directory_;
  ArrivalBounds bounds_;
};

}  // namespace atl::store
