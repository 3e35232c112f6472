// Taking a finished image into the store: root copies it, so that nobody who had a hand in the
// build can change a byte afterwards, and names it by what it copied.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace atl::builder {

struct KeptImage {
  Digest digest;
  uint64_t bytes;
};

// <images>/<digest>.erofs, root's, 0644, durable when it returns. `file` is read from its
// beginning.
Result<KeptImage> keep_image(int images, int file);

// What a copy that was interrupted has left.
Result<void> remove_unfinished_images(int images);

}  // namespace atl::builder
