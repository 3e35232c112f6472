// Traffic: what one caller may take of the server, so that it does not take it from the others:
// requests a second by key, long requests at a time by tenant, and wrong keys by address. In
// memory; it starts anew with the process.
//
// Belongs to the io_context thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "sandbox/keys.h"

namespace atl::api {

struct TrafficLimits {
  uint64_t requests_per_second = 10'000;  // by key, and as many at once; 0: any number
  uint64_t long_requests = 10'000;        // by tenant, at a time
  uint64_t wrong_keys = 100;              // by address, at once
  uint64_t wrong_keys_per_second = 10;    // afterwards
};

// So many at once, and then so many a second, for each name. Who has been quiet for long enough is
// forgotten; names that there is no room for share one bucket.
class Buckets {
 public:
  Buckets(uint64_t at_once, uint64_t per_second) : at_once_(at_once), per_second_(per_second) {}

  // False when there are not that many left.
  bool take(std::string_view name, SteadyTime now, uint64_t count = 1);
  void give_back(std::string_view name, SteadyTime now);
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double left = 0;
    SteadyTime at;
  };
  // As full as it is by now.
  Bucket& bucket_of(std::string_view name, SteadyTime now);
  void forget_full(SteadyTime now);
  double left_at(const Bucket& bucket, SteadyTime now) const;

  uint64_t at_once_;
  uint64_t per_second_;
  std::map<std::string, Bucket, std::less<>> buckets_;
};

class Traffic {
 public:
  Traffic(const Clock& clock, TrafficLimits limits);

  // One request. `key`: the id of the key, or a name for those that need none.
  Result<void> count_request(std::string_view key);

  // Before a key, token or signature from this address is looked up, which counts as a wrong one
  // until it is not.
  Result<void> count_unknown_key(std::string_view address);
  void forgive(std::string_view address);

  // A place among the long requests of a tenant, until it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(Traffic& traffic, store::TenantId tenant) : traffic_(&traffic), tenant_(tenant) {}
    ~Place();
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;

   private:
    Traffic* traffic_ = nullptr;
    store::TenantId tenant_ = store::kLocalTenant;
  };
  Result<Place> enter(store::TenantId tenant);

 private:
  void leave(store::TenantId tenant);

  const Clock& clock_;
  TrafficLimits limits_;
  Buckets requests_;
  Buckets wrong_keys_;
  std::map<store::TenantId, uint64_t> long_requests_;
};

}  // namespace atl::api
