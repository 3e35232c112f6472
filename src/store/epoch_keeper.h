// EpochKeeper: keeps the epoch file up to date with the open database, and says whether that is
// still the one of its name. Belongs to the thread of the catalog.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "store/epoch.h"

namespace atl::store {

class EpochKeeper {
 public:
  EpochKeeper(Database& process, Database& machine) : process_(process), machine_(machine) {}

  // Of a database that has files beside it; else it keeps nothing.
  Result<void> begin(const std::string& epoch_file);

  // As it was when it was opened, until finish_pairing().
  Pairing pairing() const { return pairing_; }
  int64_t joined_at_ms() const { return joined_at_ms_; }
  // What no row names has been dealt with.
  Result<void> finish_pairing();

  // kUnavailable with reason database_replaced: the file that is open no longer has its name, so
  // what is written to it is lost when it is closed.
  Result<void> check_place() const;
  // Has the epoch file say what the rows do. After each work, before anybody is told of it.
  Result<void> publish();
  // The same of the file of the database itself. Waits for the disk where kept rows have changed.
  Result<void> write_back();

 private:
  Database& process_;
  Database& machine_;
  std::optional<EpochFile> file_;
  std::string boot_;
  uint64_t synced_ = 0, stored_ = 0;  // as the file says
  int64_t published_changes_ = -1;
  Pairing pairing_ = Pairing::kPaired;
  int64_t joined_at_ms_ = 0;
};

}  // namespace atl::store
