// GET /v2/sandboxes: which of a tenant's sandboxes, in which order, page by page.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/message.h"
#include "sandbox/sandboxes.h"

namespace atl::api::e2b {

struct SandboxPage {
  std::vector<std::shared_ptr<sandbox::Sandbox>> sandboxes;
  std::string next_token;  // empty: there are no more
};

Result<SandboxPage> list_sandboxes(sandbox::Sandboxes& all, store::TenantId tenant,
                                   const http::Request& request);

}  // namespace atl::api::e2b
