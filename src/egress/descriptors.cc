#include "egress/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/check.h"

namespace atl::egress {
namespace {

constexpr size_t kKeptForControl = 32;
constexpr size_t kOwn = 40;  // of this process: files, idle pipes, questions to resolvers

size_t below(size_t limit, size_t kept) { return limit - std::min(limit, kept); }

}  // namespace

size_t Descriptors::limit() const {
  if (fixed_limit_) return *fixed_limit_;
  rlimit limit;
  ATOLL_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

bool Descriptors::is_for_sandboxes(int descriptor) const {
  size_t all = limit();
  return static_cast<size_t>(descriptor) < below(all, std::min(kKeptForControl, all / 8));
}

bool Descriptors::is_for_connections(int descriptor) const {
  size_t all = limit();
  return static_cast<size_t>(descriptor) < below(all, kKeptForControl + all / 8);
}

size_t Descriptors::most_sandboxes() const { return limit() / 4 * 3 / kOfSandbox; }

bool Descriptors::has_room_beside(size_t sandboxes) const { return sandboxes < most_sandboxes(); }

size_t Descriptors::free_for_connections() const {
  size_t all = limit();
  return below(all, kKeptForControl + all / 8 + kOwn + sandboxes_ * kOfSandbox + held_);
}

size_t Descriptors::held_by(uint64_t tenant) const {
  auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second;
}

bool Descriptors::is_short_of(uint64_t tenant) const {
  return 2 * held_by(tenant) >= free_for_connections();
}

bool Descriptors::Share::grow(Descriptors& of, uint64_t tenant, size_t count) {
  if (of.held_by(tenant) + count > of.free_for_connections()) {
    of.note_refused();
    return false;
  }
  of_ = &of;
  tenant_ = tenant;
  held_ += count;
  of.held_ += count;
  of.tenants_[tenant] += count;
  return true;
}

void Descriptors::Share::shrink(size_t count) {
  count = std::min(count, held_);
  if (count == 0) return;
  held_ -= count;
  of_->held_ -= count;
  auto tenant = of_->tenants_.find(tenant_);
  tenant->second -= count;
  if (tenant->second == 0) of_->tenants_.erase(tenant);
}

}  // namespace atl::egress
