#include "store/arrivals.h"

#include <fcntl.h>

#include <map>

#include "base/file.h"

namespace atl::store {

struct ArrivalCounts {
  ArrivalLimits limits;
  std::map<TenantId, uint64_t> of_tenant;
  uint64_t of_host = 0;
};

Arrival::~Arrival() { forget(); }

void Arrival::forget() {
  if (!counts_) return;
  counts_->of_host -= bytes_;
  auto found = counts_->of_tenant.find(tenant_);
  if (found != counts_->of_tenant.end() && (found->second -= bytes_) == 0)
    counts_->of_tenant.erase(found);
  bytes_ = 0;
}

Result<void> Arrival::write(std::string_view bytes) {
  const ArrivalLimits& limits = counts_->limits;
  if (bytes_ + bytes.size() > limits.of_one)
    return Error(Code::kInvalid, "over " + std::to_string(limits.of_one) + " bytes are sent")
        .with_reason("archive_too_large");
  uint64_t& of_tenant = counts_->of_tenant[tenant_];
  if (of_tenant + bytes.size() > limits.of_tenant ||
      counts_->of_host + bytes.size() > limits.of_host)
    return Error(Code::kExhausted, "too much is being sent at once")
        .with_reason("too_many_uploads");
  of_tenant += bytes.size();
  counts_->of_host += bytes.size();
  bytes_ += bytes.size();
  auto written = write_all(file_.get(), bytes);
  if (!written && written.error().code() == Code::kExhausted)
    return std::move(written).error().with_reason("disk_full");
  return written;
}

Fd Arrival::take() {
  forget();
  return std::move(file_);
}

Arrivals::Arrivals(std::string directory, const ArrivalLimits& limits)
    : directory_(std::move(directory)),
      counts_(std::make_shared<ArrivalCounts>(ArrivalCounts{limits, {}})) {}

Result<Arrival> Arrivals::begin(TenantId tenant) const {
  ATOLL_TRY(Fd file, open_file(directory_, O_RDWR | O_TMPFILE, 0600));
  return Arrival(counts_, tenant, std::move(file));
}

}  // namespace atl::store
