// Copying an image while hashing it, so that the bytes that were checked are the bytes that are
// kept.
#pragma once

#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace atl::cli {

// SHA-256 of everything from the descriptor's offset to the end; also written to `copy` unless it
// is -1.
Result<Digest> hash_file(int fd, int copy);

// <directory>/<digest>.erofs: root's, 0644, with exactly the bytes of that digest. kCorrupt when
// `source` has others. An image that is there and right is left alone.
Result<void> install_image(const std::string& source, const Digest& digest,
                           const std::string& directory);

}  // namespace atl::cli
