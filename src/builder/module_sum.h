// The hash by which go.sum knows a module ("h1:…", golang.org/x/mod/sumdb/dirhash): over the names
// and the contents of the files in its zip, whatever the zip itself looks like.
#pragma once

#include <string>

#include "base/result.h"
#include "builder/archive_file.h"

namespace atl::builder {

// Reads the archive to its end. What is no plain file, or has the name of another, is refused.
Result<std::string> sum_of_module(ArchiveFile& zip);

}  // namespace atl::builder
