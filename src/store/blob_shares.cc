#include "store/blob_shares.h"

namespace atl::store {

void NeededBlobs::add(const Digest& name, uint64_t size) {
  if (names.insert(name).second) bytes += size;
}

BlobShares::Claim::Claim(BlobShares& shares, TenantId tenant, uint64_t limit_bytes)
    : shares_(shares), tenant_(tenant), limit_bytes_(limit_bytes) {
  std::lock_guard<std::mutex> lock(shares_.mutex_);
  Coming& coming = shares_.coming_[tenant_];
  ++coming.claims;
  settled_before_ = coming.settled_bytes;
}

BlobShares::Claim::~Claim() {
  std::lock_guard<std::mutex> lock(shares_.mutex_);
  auto coming = shares_.coming_.find(tenant_);
  coming->second.open_bytes -= added_bytes_;
  if (settled_) coming->second.settled_bytes += added_bytes_;
  if (--coming->second.claims == 0) shares_.coming_.erase(coming);
}

Result<void> BlobShares::Claim::add(const Digest& name, uint64_t bytes) {
  if (needed_.names.contains(name)) return {};
  std::lock_guard<std::mutex> lock(shares_.mutex_);
  Coming& coming = shares_.coming_.at(tenant_);
  uint64_t settled_since = coming.settled_bytes - settled_before_;
  if (needed_.bytes + coming.open_bytes + settled_since + bytes > limit_bytes_)
    return Error(Code::kExhausted, "sealed snapshots of the tenant may have " +
                                       std::to_string(limit_bytes_) + " bytes together")
        .with_reason("sealed_share_full");
  coming.open_bytes += bytes;
  added_bytes_ += bytes;
  needed_.names.insert(name);
  return {};
}

}  // namespace atl::store
