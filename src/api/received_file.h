// A body that is a file: received on disk, bounded while it comes.
#pragma once

#include "api/router.h"
#include "store/arrivals.h"

namespace atl::api {

http::Task<Result<Fd>> receive_file(Call& call, store::Arrival arrival);

}  // namespace atl::api
