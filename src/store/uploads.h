// Uploads: archives that clients have sent ahead of the build that will use them. Each belongs to a
// tenant and has a name that its client made up; what is in it is nobody's word. They are kept for
// a day, the newest of a tenant within its share: a build that comes too late must send them again.
//
// One thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/arrivals.h"
#include "store/tenant.h"

namespace atl::store {

inline constexpr uint64_t kMaxUploadBytes = 1ull << 30;
inline constexpr uint64_t kMaxUploadsOfTenant = 4ull << 30;  // bytes
inline constexpr uint64_t kMaxUploadsOfHost = 16ull << 30;

class Uploads {
 public:
  static Result<Uploads> open(const std::string& directory);

  // For the bytes that come.
  Result<Arrival> begin(TenantId tenant) const { return arrivals_.begin(tenant); }
  // Takes the place of what had the name, and is newer than all that is kept: where the clock does
  // not say so, the file's time is set to a nanosecond after theirs.
  Result<void> keep(TenantId tenant, const Digest& name, const Fd& file) const;
  // kNotFound if it is not kept.
  Result<Fd> find(TenantId tenant, const Digest& name) const;
  // Removes what is too old or too much.
  Result<void> sweep(WallTime now) const;

 private:
  explicit Uploads(std::string path)
      : path_(std::move(path)),
        arrivals_(path_, {kMaxUploadBytes, kMaxUploadsOfTenant, kMaxUploadsOfHost}) {}
  std::string path_of(TenantId tenant, const Digest& name) const;

  std::string path_;
  Arrivals arrivals_;
};

}  // namespace atl::store
