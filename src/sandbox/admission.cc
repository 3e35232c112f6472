#include "sandbox/admission.h"

#include <sys/statvfs.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/file.h"

namespace atl::sandbox {

namespace {

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
  sandboxes_ = other.sandboxes_;
  memory_bytes_ = other.memory_bytes_;
  disk_bytes_ = other.disk_bytes_;
  return *this;
}

void Reservation::release() {
  if (!admission_) return;
  admission_->promised_.sandboxes -= sandboxes_;
  admission_->promised_.memory_bytes -= memory_bytes_;
  admission_->promised_.disk_bytes -= disk_bytes_;
  admission_ = nullptr;
}

Result<void> Reservation::resize(const Limits& limits) {
  if (!admission_) return {};
  auto growth = [](uint64_t from, uint64_t to) { return to > from ? to - from : 0; };
  ATOLL_TRY_VOID(admission_->check_growth(growth(memory_bytes_, limits.memory_bytes()),
                                          growth(disk_bytes_, limits.disk_bytes())));
  admission_->promised_.memory_bytes += limits.memory_bytes() - memory_bytes_;
  admission_->promised_.disk_bytes += limits.disk_bytes() - disk_bytes_;
  memory_bytes_ = limits.memory_bytes();
  disk_bytes_ = limits.disk_bytes();
  return {};
}

void Reservation::resize_disk(uint64_t bytes) {
  if (!admission_ || bytes >= disk_bytes_) return;
  admission_->promised_.disk_bytes -= disk_bytes_ - bytes;
  disk_bytes_ = bytes;
}

void Reservation::release_memory() {
  if (!admission_) return;
  admission_->promised_.memory_bytes -= memory_bytes_;
  memory_bytes_ = 0;
}

Result<void> Admission::check_growth(uint64_t memory_bytes, uint64_t disk_bytes) const {
  if (memory_bytes > 0 && promised_.memory_bytes + memory_bytes > budget_.memory_bytes)
    return full("the host's memory budget is promised to other sandboxes", "no_capacity");
  if (disk_bytes == 0) return {};
  if (promised_.disk_bytes + disk_bytes > budget_.disk_bytes)
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
  if (is_new && !check_growth(0, limits.disk_bytes())) return 0;
  uint64_t wanted = promised_.memory_bytes + limits.memory_bytes();
  return wanted > budget_.memory_bytes ? wanted - budget_.memory_bytes : 0;
}

Result<Reservation> Admission::reserve(const Limits& limits) {
  if (promised_.sandboxes >= budget_.sandboxes)
    return full("the host has its full number of sandboxes", "no_capacity");
  ATOLL_TRY_VOID(check_growth(limits.memory_bytes(), limits.disk_bytes()));
  return count_existing(limits);
}

Reservation Admission::count_existing(const Limits& limits) {
  Reservation reservation = count_disk(limits.disk_bytes());
  reservation.sandboxes_ = 1;
  reservation.memory_bytes_ = limits.memory_bytes();
  promised_.sandboxes += 1;
  promised_.memory_bytes += limits.memory_bytes();
  return reservation;
}

Result<Reservation> Admission::reserve_disk(uint64_t bytes) {
  ATOLL_TRY_VOID(check_growth(0, bytes));
  return count_disk(bytes);
}

Reservation Admission::count_disk(uint64_t bytes) {
  Reservation reservation;
  reservation.admission_ = this;
  reservation.disk_bytes_ = bytes;
  promised_.disk_bytes += bytes;
  return reservation;
}

}  // namespace atl::sandbox
