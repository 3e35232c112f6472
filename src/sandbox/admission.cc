#include "sandbox/admission.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/file.h"

namespace atl::sandbox {

namespace {

constexpr uint64_t kTenantPart = 2;  // of the budget, what one tenant may be promised: half

// What the greatest of those that run a sandbox behind another wall takes beside.
constexpr uint64_t kMonitorDiskBytes = 64ull << 20;

Error full(std::string message, std::string_view reason) {
  return Error(Code::kExhausted, std::move(message)).with_reason(reason);
}

std::optional<uint64_t> kilobytes_after(std::string_view name, std::string_view text) {
  size_t at = text.find(name);
  if (at == text.npos) return std::nullopt;
  at = text.find_first_of("0123456789", at + name.size());
  if (at == text.npos) return std::nullopt;
  uint64_t kilobytes = 0;
  auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), kilobytes);
  return error == std::errc() ? std::optional(kilobytes) : std::nullopt;
}

}  // namespace

Reservation::Reservation(Reservation&& other) noexcept { *this = std::move(other); }

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  admission_ = std::exchange(other.admission_, nullptr);
  tenant_ = other.tenant_;
  sandboxes_ = other.sandboxes_;
  memory_bytes_ = other.memory_bytes_;
  disk_bytes_ = other.disk_bytes_;
  return *this;
}

void Reservation::release() {
  if (!admission_) return;
  admission_->take_back(tenant_, {sandboxes_, memory_bytes_, disk_bytes_});
  admission_ = nullptr;
}

Result<void> Reservation::resize(const Limits& limits) {
  if (!admission_) return {};
  auto growth = [](uint64_t from, uint64_t to) { return to > from ? to - from : 0; };
  Admission::Growth more{growth(memory_bytes_, limits.memory_bytes()),
                         growth(disk_bytes_, limits.disk_bytes())};
  ATOLL_TRY_VOID(admission_->check_fits(limits));
  ATOLL_TRY_VOID(admission_->check_share(tenant_, more));
  ATOLL_TRY_VOID(admission_->check_growth(more));
  admission_->take_back(tenant_, {sandboxes_, memory_bytes_, disk_bytes_});
  memory_bytes_ = limits.memory_bytes();
  disk_bytes_ = limits.disk_bytes();
  admission_->promise(tenant_, {sandboxes_, memory_bytes_, disk_bytes_});
  return {};
}

Result<void> Reservation::resize_for(store::TenantId tenant, const Limits& limits) {
  if (!admission_) return {};
  ATOLL_TRY_VOID(admission_->check_share(tenant, {limits.memory_bytes(), limits.disk_bytes()}));
  ATOLL_TRY_VOID(resize(limits));
  Promised held{sandboxes_, memory_bytes_, disk_bytes_};
  admission_->take_back(tenant_, held);
  tenant_ = tenant;
  admission_->promise(tenant_, held);
  return {};
}

void Reservation::resize_disk(uint64_t bytes) {
  if (!admission_ || bytes >= disk_bytes_) return;
  admission_->take_back(tenant_, {0, 0, disk_bytes_ - bytes});
  disk_bytes_ = bytes;
}

void Reservation::release_memory() {
  if (!admission_) return;
  admission_->take_back(tenant_, {0, memory_bytes_, 0});
  memory_bytes_ = 0;
}

void Admission::promise(Tenant tenant, const Promised& more) {
  promised_ += more;
  if (tenant) of_tenants_[*tenant] += more;
}

void Admission::take_back(Tenant tenant, const Promised& less) {
  promised_ -= less;
  if (tenant) of_tenants_[*tenant] -= less;
}

uint64_t Admission::pool_bytes() const {
  struct stat status;
  std::string path = budget_.state_directory + "/pool.btrfs";
  // It is made once, and keeps its size.
  if (pool_bytes_ == 0 && stat(path.c_str(), &status) == 0)
    pool_bytes_ = static_cast<uint64_t>(status.st_size);
  return pool_bytes_;
}

uint64_t Admission::disk_budget() const {
  uint64_t pool = pool_bytes();
  if (budget_.disk_bytes != kNoDiskBudget || pool == 0) return budget_.disk_bytes;
  return pool * kDiskOvercommit;
}

uint64_t Admission::fitting_disk(uint64_t bytes) const {
  uint64_t pool = pool_bytes();
  return pool > kMonitorDiskBytes ? std::min(bytes, pool - kMonitorDiskBytes) : bytes;
}

Result<void> Admission::check_fits(const Limits& limits) const {
  auto never = [](const char* what, uint64_t most, const char* field) {
    return Error(Code::kInvalid, "this host has " + std::to_string(most) + " bytes of " + what +
                                     ", with what runs the sandbox")
        .with_reason("exceeds_host")
        .with_field(field);
  };
  if (limits.memory_bytes() > budget_.host_memory_bytes)
    return never("memory", budget_.host_memory_bytes, "limits.memory_bytes");
  uint64_t pool = pool_bytes();
  if (pool != 0 && limits.disk_bytes() > pool)
    return never("disk for sandboxes", pool, "limits.disk_bytes");
  return {};
}

Result<void> Admission::check_share(Tenant tenant, Growth growth) const {
  auto found = tenant ? of_tenants_.find(*tenant) : of_tenants_.end();
  if (!tenant || *tenant == store::kLocalTenant) return {};
  Promised held = found == of_tenants_.end() ? Promised() : found->second;
  auto is_over = [](uint64_t has, uint64_t more, uint64_t budget) {
    return more > 0 && (more > budget || has + more > budget / kTenantPart);
  };
  bool memory = is_over(held.memory_bytes, growth.memory_bytes, budget_.memory_bytes);
  bool disk = is_over(held.disk_bytes, growth.disk_bytes, disk_budget());
  if (!memory && !disk) return {};
  return full(std::string("the tenant's share of the host's ") + (memory ? "memory" : "disk") +
                  " is promised to its sandboxes, volumes and snapshots",
              "tenant_share_full");
}

Result<void> Admission::check_growth(Growth growth) const {
  if (growth.memory_bytes > 0 &&
      promised_.memory_bytes + growth.memory_bytes > budget_.memory_bytes)
    return full("the host's memory budget is promised to other sandboxes", "no_capacity");
  if (growth.disk_bytes == 0) return {};
  if (promised_.disk_bytes + growth.disk_bytes > disk_budget())
    return full("the host's disk budget is promised to other sandboxes", "no_capacity");
  struct statvfs space;
  if (statvfs(budget_.state_directory.c_str(), &space) != 0)
    return Error::system("statvfs " + budget_.state_directory);
  if (space.f_bavail * space.f_frsize < budget_.free_space_floor_bytes)
    return full("the host's disk is nearly full", "disk_full");
  return {};
}

bool Admission::memory_is_short() const {
  auto text = read_file(budget_.memory_info);
  if (!text) return false;
  auto total = kilobytes_after("MemTotal:", *text);
  auto available = kilobytes_after("MemAvailable:", *text);
  return total && available && *available < *total / 16;
}

uint64_t Admission::missing_memory(const Limits& limits, Place place) const {
  bool is_new = place == Place::kNew;
  if (is_new && promised_.sandboxes >= budget_.sandboxes) return 0;
  if (is_new && !check_growth({0, limits.disk_bytes()})) return 0;
  uint64_t wanted = promised_.memory_bytes + limits.memory_bytes();
  return wanted > budget_.memory_bytes ? wanted - budget_.memory_bytes : 0;
}

Result<Reservation> Admission::reserve(const Limits& limits, Tenant tenant) {
  ATOLL_TRY_VOID(check_fits(limits));
  ATOLL_TRY_VOID(check_share(tenant, {limits.memory_bytes(), limits.disk_bytes()}));
  if (promised_.sandboxes >= budget_.sandboxes)
    return full("the host has its full number of sandboxes", "no_capacity");
  ATOLL_TRY_VOID(check_growth({limits.memory_bytes(), limits.disk_bytes()}));
  return count_existing(limits, tenant);
}

Reservation Admission::count_existing(const Limits& limits, Tenant tenant) {
  Reservation reservation = count_disk(limits.disk_bytes(), tenant);
  reservation.sandboxes_ = 1;
  reservation.memory_bytes_ = limits.memory_bytes();
  promise(tenant, {1, limits.memory_bytes(), 0});
  return reservation;
}

Result<Reservation> Admission::reserve_disk(uint64_t bytes, Tenant tenant) {
  ATOLL_TRY_VOID(check_share(tenant, {0, bytes}));
  ATOLL_TRY_VOID(check_growth({0, bytes}));
  return count_disk(bytes, tenant);
}

Reservation Admission::count_disk(uint64_t bytes, Tenant tenant) {
  Reservation reservation;
  reservation.admission_ = this;
  reservation.tenant_ = tenant;
  reservation.disk_bytes_ = bytes;
  promise(tenant, {0, 0, bytes});
  return reservation;
}

}  // namespace atl::sandbox
