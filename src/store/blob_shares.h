// BlobShares: how many bytes of blobs each tenant has, those that are just being put included. A
// blob that several snapshots of a tenant need counts once; one that two tenants need counts for
// both, so that nobody learns from a refusal what others have.
//
// May be used by several threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "base/ids.h"
#include "base/result.h"
#include "store/tenant.h"

namespace atl::store {

inline constexpr uint64_t kSealedShareBytes = 64ull << 30;  // of a tenant that was given no other

// Blobs that are there for somebody.
struct NeededBlobs {
  std::set<Digest> names = {};
  uint64_t bytes = 0;
  void add(const Digest& name, uint64_t size);
};

class BlobShares {
 public:
  // What one work adds to what its tenant has. Made before it is looked up what that is: whatever
  // gets its row from then on is counted by this.
  class Claim {
   public:
    Claim(BlobShares& shares, TenantId tenant, uint64_t limit_bytes);
    ~Claim();
    Claim(const Claim&) = delete;

    void set_needed(NeededBlobs needed) { needed_ = std::move(needed); }
    // Before it is put. kExhausted with reason sealed_share_full.
    Result<void> add(const Digest& name, uint64_t bytes);
    // A row needs all that was added: whoever looks from now on finds it there.
    void settle() { settled_ = true; }

   private:
    BlobShares& shares_;
    TenantId tenant_;
    uint64_t limit_bytes_;
    NeededBlobs needed_;
    uint64_t added_bytes_ = 0;
    uint64_t settled_before_ = 0;
    bool settled_ = false;
  };

 private:
  struct Coming {
    size_t claims = 0;
    uint64_t open_bytes = 0;
    uint64_t settled_bytes = 0;  // since there were no claims
  };
  std::mutex mutex_;
  std::map<TenantId, Coming> coming_;  // of those that have claims
};

}  // namespace atl::store
