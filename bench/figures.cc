#include "figures.h"

namespace atl::bench {

void Figures::add(double milliseconds, bool from_pool) {
  std::lock_guard lock(mutex_);
  samples_ms_.push_back(milliseconds);
  if (from_pool) ++from_pool_;
}

void Figures::fail(const Error& error) {
  std::lock_guard lock(mutex_);
  ++failed_;
  if (first_failure_.empty()) first_failure_ = error.message();
}

std::vector<double> Figures::samples() const {
  std::lock_guard lock(mutex_);
  return samples_ms_;
}

boost::json::object Figures::row(std::string_view measure, int clients) const {
  std::lock_guard lock(mutex_);
  boost::json::array samples(samples_ms_.begin(), samples_ms_.end());
  return {{"measure", measure},      {"clients", clients}, {"samples_ms", std::move(samples)},
          {"from_pool", from_pool_}, {"failed", failed_},  {"failure", first_failure_}};
}

}  // namespace atl::bench
