// A copy of atolld's database that is consistent while atolld writes to it. SQLite reads it as the
// user it belongs to, never as root: a file that atolld wrote may be made to mislead its reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/process.h"
#include "store/epoch_file.h"

namespace atl::cli::backup {

struct DatabaseCopy {
  uint32_t schema_version = 0;
  store::Epoch epoch;                  // no identity: it is older than epochs
  std::vector<std::string> sandboxes;  // ids of those that run
};

// Makes the file `to`, in a directory that `daemon` can write.
Result<DatabaseCopy> copy_database(const std::string& from, const std::string& to,
                                   const Identity& daemon);

// The newest schema that this program knows.
uint32_t known_schema_version();

}  // namespace atl::cli::backup
