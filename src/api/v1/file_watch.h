// GET …/files/{path}?watch: changes as server-sent events.
#pragma once

#include "api/v1/file_request.h"

namespace atl::api::v1 {

http::Task<Reply> watch_files(Call& call, FileTarget target);

}  // namespace atl::api::v1
