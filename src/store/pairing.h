// Whether a database and the files of its state directory belong together. Who starts with another
// database than the one that wrote them, or with none, would take every file for garbage.
//
//   database  epoch file   what it means
//   none      none         a new directory, if there are no files in it either
//   none      there        the database is lost
//   older     there        another, or an older copy, or its last rows are lost
//   there     none         as long as it was never paired: the first start; else the file is lost
//
// A database that says more than the file is a healthy one: the file is written after the rows.
#pragma once

#include <string>

#include "base/result.h"
#include "store/epoch.h"

namespace atl::store {

struct PairedPlaces {
  // Of atolld: atoll.db, and beside it blobs, outputs and packs.
  std::string daemon_directory;
  std::string epoch_file;
  std::string database() const { return daemon_directory + "/atoll.db"; }
};

// The boot of this machine, for EpochMark.
Result<std::string> read_boot_id();

// Refuses a database that the files do not belong to, or that is damaged where it says which files
// are needed; changes nothing. kConflict with reason database_mismatch says what was found.
Result<void> check_pair(const PairedPlaces& places);

// Joins them all the same: from the next start on what no row names is set aside, not removed. A
// damaged database is refused all the same. For an Atoll that does not run.
Result<void> join_pair(const PairedPlaces& places, int64_t now_ms);

}  // namespace atl::store
