// What a caller asks of POST /v1/run, taken apart and checked: a sandbox, the files in it, the exec
// that runs the program, and the one before it that compiles it where the language needs one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

struct RunFile {
  std::string path;
  std::string bytes;
};

struct RunRequest {
  sandbox::CreateSandbox create;
  std::string user = "user";
  std::vector<RunFile> files;
  boost::json::object exec;                    // as the body of an exec
  std::optional<boost::json::object> compile;  // the same, before it
  // The sandbox's limits once it is compiled, where compiling has others.
  std::optional<sandbox::ChangeSandbox> after_compile;
};

Result<RunRequest> parse_run(std::string_view body, sandbox::Templates& templates,
                             store::TenantId tenant);

}  // namespace atl::api::v1
