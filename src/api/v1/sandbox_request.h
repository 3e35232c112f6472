// What a caller asks of /v1/sandboxes, taken apart and checked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

Result<sandbox::CreateSandbox> parse_create(std::string_view body);
// The sandbox of a run, which has other fields too: those were taken before. A run deletes its
// sandbox, so it is never one that was there before.
Result<sandbox::CreateSandbox> parse_create_of_run(std::string_view body,
                                                   std::vector<std::string> taken_before);
Result<sandbox::ChangeSandbox> parse_change(std::string_view body);
// `limit`, `cursor`, `state` and any number of `metadata` up to a limit.
Result<store::SandboxQuery> parse_query(const std::string& query);

}  // namespace atl::api::v1
