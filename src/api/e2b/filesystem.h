// Service filesystem.Filesystem, but for the watching of directories (watch.h).
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"
#include "sandbox/files.h"

namespace atl::api::e2b {

// The files of the call's sandbox, as its user.
struct FileScope {
  sandbox::Files files;
  std::string user;
};
Result<FileScope> file_scope(const Call& call, const Plane& plane);

void add_filesystem_routes(Router& router, Plane plane);

}  // namespace atl::api::e2b
