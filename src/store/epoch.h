// Epoch: what a database says of itself, in the table `epoch`, so that the files beside it can be
// known to belong to it. Files that no row names are removed only by a database that has proved it
// (pairing.h); a list that was short is no reason.
//
// The numbers rise in the transaction of the rows that they count. The epoch file repeats them
// after the commit, so it never says more than the database does, whenever a process is killed.
#pragma once

#include "base/result.h"
#include "store/database.h"
#include "store/epoch_file.h"

namespace atl::store {

// How far a database and the files beside it have come to be one.
enum class Pairing : unsigned char {
  kFresh,         // it was made for a directory without files
  kUpgraded,      // it and its files are older than epochs
  kPaired,        // proved at each start
  kSettingAside,  // an operator has joined them; what no row names is set aside
};

struct EpochRow {
  Epoch epoch;
  Pairing pairing = Pairing::kPaired;
  int64_t joined_at_ms = 0;  // by an operator; 0: never
};

// Whether it has the table: one of an older version has not.
Result<bool> has_epoch(Database& database);
Result<EpochRow> read_epoch(Database& database);
// What the file at `path` holds itself; nothing: none that can be read. Only while this process has
// no connection to it.
std::optional<Epoch> find_stored_epoch(const std::string& path);
Result<void> set_pairing(Database& database, Pairing pairing);
// An operator says that what is beside it is its own, and that its rows are the newest that there
// are: `synced` is what the files knew.
Result<void> join_files(Database& database, uint64_t synced, int64_t now_ms);

// From now on every change of a kept row by this connection raises `synced`. Of the connection
// that syncs: a number that may yet be lost must not reach the epoch file.
Result<void> count_synced_changes(Database& database);

}  // namespace atl::store
