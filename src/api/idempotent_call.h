// The header Idempotency-Key around one call of a creating route: 1 to 255 printable ASCII
// characters, remembered for 24 hours with the tenant. The same request again gets the first
// answer, with `Idempotency-Replayed: true`; another request with that key is refused. Answers are
// JSON; of their header fields only Location is kept.
#pragma once

#include "api/router.h"

namespace atl::api {

bool has_idempotency_key(const http::Request& request);
// For who reads a body before run_once(): that the key, if there is one, is well-formed.
Result<void> check_idempotency_key(const http::Request& request);

// Carries out `action` unless an equal call has; see sandbox/idempotency.h.
http::Task<Reply> run_once(sandbox::Idempotency& idempotency, Call& call,
                           const RouteAction& action);

}  // namespace atl::api
