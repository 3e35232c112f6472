#include "store/arrivals.h"

#include <fcntl.h>

#include <map>
#include <mutex>

#include "base/file.h"

namespace atl::store {

struct ArrivalCounts {
  explicit ArrivalCounts(const ArrivalLimits& most) : limits(most) {}
  const ArrivalLimits limits;
  std::mutex mutex;
  std::map<TenantId, uint64_t> of_tenant;
  uint64_t of_host = 0;
};

ArrivalCount::~ArrivalCount() {
  if (counts_) forget();
}

void ArrivalCount::forget() {
  std::lock_guard<std::mutex> lock(counts_->mutex);
  counts_->of_host -= bytes_;
  auto found = counts_->of_tenant.find(tenant_);
  if (found != counts_->of_tenant.end() && (found->second -= bytes_) == 0)
    counts_->of_tenant.erase(found);
  bytes_ = 0;
}

Result<void> ArrivalCount::add(uint64_t bytes) {
  const ArrivalLimits& limits = counts_->limits;
  if (bytes_ + bytes > limits.of_one)
    return Error(Code::kInvalid, "over " + std::to_string(limits.of_one) + " bytes are sent")
        .with_reason("archive_too_large");
  std::lock_guard<std::mutex> lock(counts_->mutex);
  uint64_t& of_tenant = counts_->of_tenant[tenant_];
  if (of_tenant + bytes > limits.of_tenant || counts_->of_host + bytes > limits.of_host)
    return Error(Code::kExhausted, "too much is being sent at once")
        .with_reason("too_many_uploads");
  of_tenant += bytes;
  counts_->of_host += bytes;
  bytes_ += bytes;
  return {};
}

ArrivalBounds::ArrivalBounds(const ArrivalLimits& limits)
    : counts_(std::make_shared<ArrivalCounts>(limits)) {}

Result<void> Arrival::write(std::string_view bytes) {
  ATOLL_TRY_VOID(count_.add(bytes.size()));
  auto written = write_all(file_.get(), bytes);
  if (!written && written.error().code() == Code::kExhausted)
    return std::move(written).error().with_reason("disk_full");
  return written;
}

Fd Arrival::take() {
  count_.forget();
  return std::move(file_);
}

Result<Arrival> Arrivals::begin(TenantId tenant) const {
  ATOLL_TRY(Fd file, open_file(directory_, O_RDWR | O_TMPFILE, 0600));
  return Arrival(bounds_.begin(tenant), std::move(file));
}

}  // namespace atl::store
