// Routes of /v1/sandboxes/{id}/contexts.
#pragma once

#include "api/json_reader.h"
#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

// All of them, those of context_runs.h included.
void add_context_routes(Router& router, sandbox::Sandboxes& sandboxes);

struct NamedContext {
  std::shared_ptr<sandbox::Sandbox> sandbox;
  std::shared_ptr<sandbox::Context> context;
};
// The context that the second parameter of the call names, in the sandbox of the first.
Result<NamedContext> named_context(Call& call, sandbox::Sandboxes& sandboxes);

// The field "env": NAME=value. What no variable can be called is refused.
std::vector<std::string> parse_variables(ObjectReader& reader);

}  // namespace atl::api::v1
