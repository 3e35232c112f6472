// Routes of /v1/sandboxes/{id}/execs.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

// How much of each stream an answer carries inline; the rest is read from …/output.
inline constexpr size_t kMaxInlineBytes = 1024 * 1024;

void add_exec_routes(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
