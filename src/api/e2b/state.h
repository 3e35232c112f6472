// Pause, snapshots and forks, as E2B's clients ask for them, for holders of a key.
#pragma once

#include "api/e2b/plane.h"
#include "api/router.h"

namespace atl::api::e2b {

void add_state_routes(Router& router, Plane plane);

// Lets a paused one go on, for that long, and answers with it.
http::Task<Reply> resume_sandbox(Call& call, Plane plane, uint64_t timeout_ms);

// The newest snapshot that was given this name ("name" or "name:tag"); nothing: none was.
http::Task<Result<std::optional<SnapshotId>>> find_snapshot(store::TenantId tenant, Plane plane,
                                                            std::string name);

}  // namespace atl::api::e2b
