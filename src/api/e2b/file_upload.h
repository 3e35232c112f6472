// The body of POST /files: one file as it is (perhaps gzipped), or several as multipart/form-data.
// Each takes effect under its name when it is whole.
#pragma once

#include "api/e2b/filesystem.h"
#include "api/router.h"

namespace atl::api::e2b {

http::Task<Reply> take_upload(Call& call, FileScope scope);

}  // namespace atl::api::e2b
