#include "api/traffic.h"

#include <algorithm>
#include <utility>

namespace atl::api {

namespace {

constexpr size_t kMaxBuckets = 4096;
constexpr std::string_view kOthers = "others";

Error rate_limited(std::string message) {
  return Error(Code::kExhausted, std::move(message)).with_reason("rate_limited");
}

}  // namespace

double Buckets::left_at(const Bucket& bucket, SteadyTime now) const {
  std::chrono::duration<double> passed = now - bucket.at;
  double more = passed.count() * static_cast<double>(per_second_);
  return std::min(static_cast<double>(at_once_), bucket.left + more);
}

void Buckets::forget_full(SteadyTime now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return left_at(entry.second, now) >= static_cast<double>(at_once_);
  });
}

Buckets::Bucket& Buckets::bucket_of(std::string_view name, SteadyTime now) {
  auto found = buckets_.find(name);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxBuckets) forget_full(now);
    if (buckets_.size() >= kMaxBuckets) name = kOthers;
    Bucket full{static_cast<double>(at_once_), now};
    found = buckets_.try_emplace(std::string(name), full).first;
  }
  Bucket& bucket = found->second;
  bucket.left = left_at(bucket, now);
  bucket.at = now;
  return bucket;
}

bool Buckets::take(std::string_view name, SteadyTime now, uint64_t count) {
  Bucket& bucket = bucket_of(name, now);
  double wanted = static_cast<double>(count);
  if (bucket.left < wanted) return false;
  bucket.left -= wanted;
  return true;
}

void Buckets::give_back(std::string_view name, SteadyTime now) {
  Bucket& bucket = bucket_of(name, now);
  bucket.left = std::min(static_cast<double>(at_once_), bucket.left + 1);
}

Traffic::Traffic(const Clock& clock, TrafficLimits limits)
    : clock_(clock),
      limits_(limits),
      requests_(limits.requests_per_second, limits.requests_per_second),
      wrong_keys_(limits.wrong_keys, limits.wrong_keys_per_second) {}

Result<void> Traffic::count_request(std::string_view key) {
  if (limits_.requests_per_second == 0 || requests_.take(key, clock_.steady_now())) return {};
  return rate_limited("more than " + std::to_string(limits_.requests_per_second) +
                      " requests a second with one key");
}

Result<void> Traffic::count_unknown_key(std::string_view address) {
  if (wrong_keys_.take(address, clock_.steady_now())) return {};
  return rate_limited("too many wrong keys, tokens or signatures came from this address");
}

void Traffic::forgive(std::string_view address) {
  wrong_keys_.give_back(address, clock_.steady_now());
}

Result<Traffic::Place> Traffic::enter(store::TenantId tenant) {
  uint64_t& count = long_requests_[tenant];
  if (count >= limits_.long_requests)
    return Error(Code::kExhausted,
                 "the tenant has " + std::to_string(count) + " streams and waiting requests open")
        .with_reason("too_many_streams");
  ++count;
  return Place(*this, tenant);
}

void Traffic::leave(store::TenantId tenant) {
  auto found = long_requests_.find(tenant);
  if (--found->second == 0) long_requests_.erase(found);
}

Traffic::Place::Place(Place&& other) noexcept
    : traffic_(std::exchange(other.traffic_, nullptr)), tenant_(other.tenant_) {}

Traffic::Place::~Place() {
  if (traffic_) traffic_->leave(tenant_);
}

}  // namespace atl::api
