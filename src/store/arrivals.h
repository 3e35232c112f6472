// Arrivals: files that clients are sending, without a name until they are whole, and how many bytes
// of all of them are on disk: of one, of a tenant, of the host. Who sends many at once is refused
// before the disk is full.
//
// One thread.
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

// One file. Destroyed before it is taken it leaves nothing.
class Arrival {
 public:
  Arrival(Arrival&&) noexcept = default;
  ~Arrival();

  // kInvalid with reason archive_too_large, kExhausted with reason too_many_uploads or disk_full.
  Result<void> write(std::string_view bytes);
  // Whole: it is the caller's, and counts no more.
  Fd take();

 private:
  friend class Arrivals;
  Arrival(std::shared_ptr<ArrivalCounts> counts, TenantId tenant, Fd file)
      : counts_(std::move(counts)), tenant_(tenant), file_(std::move(file)) {}
  void forget();

  std::shared_ptr<ArrivalCounts> counts_;  // null: moved from
  TenantId tenant_;
  Fd file_;
  uint64_t bytes_ = 0;
};

class Arrivals {
 public:
  Arrivals(std::string directory, const ArrivalLimits& limits);
  Result<Arrival> begin(TenantId tenant) const;

 private:
  std::string directory_;
  std::shared_ptr<ArrivalCounts> counts_;
};

}  // namespace atl::store
