#include "store/epoch_keeper.h"

#include <unistd.h>

#include "store/pairing.h"

namespace atl::store {

Result<void> EpochKeeper::begin(const std::string& epoch_file) {
  ATOLL_TRY(EpochRow row, read_epoch(machine_));
  ATOLL_TRY(boot_, read_boot_id());
  // None, as long as it was never paired: its rows are on disk, and from here on the file is too.
  ATOLL_TRY(std::optional<EpochMark> mark, EpochFile::read(epoch_file));
  auto file =
      mark ? EpochFile::open(epoch_file) : EpochFile::create(epoch_file, {row.epoch, boot_, 0});
  if (!file) return std::move(file).error();
  file_ = std::move(*file);
  pairing_ = row.pairing;
  joined_at_ms_ = row.joined_at_ms;
  if (mark) stored_ = mark->stored;
  return write_back();
}

Result<void> EpochKeeper::finish_pairing() {
  ATOLL_TRY_VOID(set_pairing(machine_, Pairing::kPaired));
  pairing_ = Pairing::kPaired;
  return {};
}

Result<void> EpochKeeper::check_place() const {
  bool has_log = access((machine_.path() + "-wal").c_str(), F_OK) == 0;
  if (has_log && !machine_.has_moved()) return {};
  return Error(Code::kUnavailable,
               "the file of the database " + machine_.path() +
                   " was moved, replaced or removed while atolld has it open: put it back, or "
                   "see `atoll restore`")
      .with_reason("database_replaced");
}

Result<void> EpochKeeper::publish() {
  if (!file_) return {};
  int64_t changes = machine_.total_changes() + process_.total_changes();
  if (changes == published_changes_) return {};
  ATOLL_TRY(EpochRow row, read_epoch(machine_));
  synced_ = row.epoch.synced;
  ATOLL_TRY_VOID(file_->write({row.epoch, boot_, stored_}));
  published_changes_ = changes;
  return {};
}

Result<void> EpochKeeper::write_back() {
  ATOLL_TRY_VOID(publish());
  if (!file_ || stored_ == synced_) return {};
  ATOLL_TRY(bool written, machine_.write_back());
  if (!written) return {};
  stored_ = synced_;
  published_changes_ = -1;
  return publish();
}

}  // namespace atl::store
