// Images: S/images/<digest>.erofs, each mounted once at R/images/<digest> in the warden's own mount
// namespace. Every isolate gets a clone of that one mount, so all share one page cache.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// Mounts it unless it is; ENOENT if there is no such image.
Result<void> mount_image(const Host& host, const Digest& digest);

Result<void> unmount_images(const Host& host);
// Its file and its mount; isolates that use it keep it until they end.
Result<void> remove_image(const Host& host, const Digest& digest);

}  // namespace atl::warden
