// What a caller asks of /v1/sandboxes, taken apart and checked.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

Result<sandbox::CreateSandbox> parse_create(std::string_view body);
Result<sandbox::ChangeSandbox> parse_change(std::string_view body);
// `limit`, `cursor`, `state` and any number of `metadata` up to a limit.
Result<store::SandboxQuery> parse_query(const std::string& query);

}  // namespace atl::api::v1
