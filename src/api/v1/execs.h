// Routes of /v1/sandboxes/{id}/execs.
#pragma once

#include "api/router.h"
#include "sandbox/environment.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

// How much of each stream an answer carries inline; the rest is read from …/output.
inline constexpr size_t kMaxInlineBytes = 1024 * 1024;

// All of them, those of exec_output.h, exec_input.h and exec_attach.h included.
void add_exec_routes(Router& router, sandbox::Sandboxes& sandboxes);

// Those that a sandbox was made with (JSON).
sandbox::Variables sandbox_variables(const std::string& environment);

struct ExecCall {
  sandbox::ExecRequest request;
  std::string description;
  bool wait = false;
};

// What a sandbox has for an exec that does not say.
struct ExecDefaults {
  std::string environment = "{}";  // JSON
  std::string user = "user";
  std::string directory = "";
};

// The body of a POST, for that sandbox or for one with these limits.
Result<ExecCall> parse_exec(std::string_view body, const sandbox::Sandbox& sandbox);
Result<ExecCall> parse_exec(std::string_view body, const sandbox::Limits& limits,
                            const ExecDefaults& defaults);

// The exec that the second parameter of the call names, in the sandbox of the first.
http::Task<Result<std::shared_ptr<sandbox::Exec>>> named_exec(Call& call,
                                                              sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
