#include "api/e2b/default_context.h"

#include <algorithm>

#include "api/v1/exec_json.h"
#include "api/v1/execs.h"
#include "sandbox/context_language.h"
#include "sandbox/environment.h"
#include "sandbox/trust.h"

namespace atl::api::e2b {

using sandbox::Context;
using sandbox::Sandbox;

namespace {

std::shared_ptr<Context> find_default(Sandbox& sandbox, std::string_view language) {
  for (const auto& context : sandbox.contexts().all())
    if (context->row().language == language && context->row().directory.empty()) return context;
  return nullptr;
}

}  // namespace

std::optional<std::string> language_named(std::string_view name) {
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return sandbox::context_language(lower);
}

http::Task<Result<std::shared_ptr<Context>>> make_context(std::shared_ptr<Sandbox> sandbox,
                                                          std::string language,
                                                          std::string directory) {
  sandbox::Limits limits = sandbox::limits_of(sandbox->row());
  sandbox::ContextRequest request;
  request.language = std::move(language);
  request.directory = std::move(directory);
  sandbox::Variables variables = v1::sandbox_variables(sandbox::environment_of(sandbox->row()));
  request.environment = sandbox::compose_environment(limits.wall.cpu_millis, {variables});
  sandbox::ExecRequest shown;
  shown.arguments = {sandbox::interpreter_of(request.language).front()};
  shown.directory = request.directory;
  shown.input_mode = agent::InputMode::kOpen;
  shown.output_limit_bytes = limits.output_bytes;
  shown.cpu_time_ms = limits.cpu_time_ms;
  shown.open_files = limits.wall.open_files;
  request.description = v1::describe(shown);
  co_return co_await sandbox::start_context(sandbox, std::move(request));
}

http::Task<Result<std::shared_ptr<Context>>> default_context(std::shared_ptr<Sandbox> sandbox,
                                                             std::string language) {
  if (auto known = find_default(*sandbox, language)) co_return known;
  auto made = co_await make_context(sandbox, language, "");
  // Two callers at once make one each; both mean the first.
  auto first = find_default(*sandbox, language);
  if (made && first && first != *made) {
    auto removed = co_await sandbox->contexts().remove(*made);
    if (!removed) co_return std::move(removed).error();
    co_return first;
  }
  co_return made;
}

}  // namespace atl::api::e2b
