#include "api/v1/contexts.h"

#include <boost/json/array.hpp>

#include "api/json_reply.h"
#include "api/v1/context_json.h"
#include "api/v1/context_runs.h"
#include "api/v1/exec_json.h"
#include "api/v1/execs.h"
#include "api/v1/sandboxes.h"
#include "sandbox/context_language.h"
#include "sandbox/context_start.h"
#include "sandbox/environment.h"
#include "sandbox/pause.h"
#include "sandbox/trust.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Context;
using sandbox::ContextRequest;
using sandbox::Sandbox;
using sandbox::Sandboxes;

namespace {

constexpr size_t kMaxVariables = 256;

// What its exec is shown as: the runtime's text would only be in the way.
std::string description_of(const ContextRequest& request, const sandbox::Limits& limits) {
  sandbox::ExecRequest shown{.arguments = {sandbox::interpreter_of(request.language).front()},
                             .environment = {},
                             .directory = request.directory};
  shown.input_mode = agent::InputMode::kOpen;
  shown.output_limit_bytes = limits.output_bytes;
  shown.cpu_time_ms = limits.cpu_time_ms;
  shown.open_files = limits.wall.open_files;
  return describe(shown);
}

Result<ContextRequest> parse_context(std::string_view body, const Sandbox& sandbox) {
  ATOLL_TRY(json::object object, parse_object(body));
  ObjectReader reader(object);
  ContextRequest request;
  std::string name = reader.optional_text("language", 32).value_or("python");
  auto language = sandbox::context_language(name);
  if (!language) reader.refuse("language", "must be python, javascript, typescript or bash");
  request.language = language.value_or("");
  auto directory = reader.optional_text("cwd", agent::kMaxPathBytes);
  if (directory && !directory->starts_with('/')) reader.refuse("cwd", "must be an absolute path");
  request.directory = directory.value_or("");
  TextPairs variables = reader.text_pairs("env", kMaxVariables, agent::kMaxTextBytes / 2);
  for (const auto& [variable, value] : variables)
    if (!sandbox::is_variable_name(variable))
      reader.refuse("env", "has a name that no variable can have");
  ATOLL_TRY_VOID(reader.finish());
  request.environment = sandbox::compose_environment(
      sandbox::limits_of(sandbox.row()).wall.cpu_millis,
      {sandbox_variables(sandbox::environment_of(sandbox.row())), variables});
  request.description = description_of(request, sandbox::limits_of(sandbox.row()));
  return request;
}

http::Task<Result<std::shared_ptr<Context>>> create_once(Call& call,
                                                         std::shared_ptr<Sandbox> sandbox) {
  if (call.made.context) {
    auto known = sandbox->contexts().find(*call.made.context);
    if (!known) co_return no_such_context();
    co_return known;
  }
  ATOLL_CO_TRY(ContextRequest request, parse_context(call.body, *sandbox));
  request.idempotency_key = call.idempotency_key;
  auto created = co_await sandbox::start_context(sandbox, std::move(request));
  co_return created;
}

http::Task<Reply> create_context(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  ATOLL_CO_TRY(std::shared_ptr<Context> context, co_await create_once(call, sandbox));
  co_return std::optional(json_reply(201, context_json(*context)));
}

http::Task<Reply> list_contexts(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  json::array items;
  for (const auto& context : sandbox->contexts().all()) items.push_back(context_json(*context));
  json::object object;
  object["contexts"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_context(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  co_return std::optional(json_reply(200, context_json(*named.context)));
}

// {"start": the place in the code, in characters, that each of "matches" begins at}.
http::Task<Reply> complete(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(named.sandbox));
  ATOLL_CO_TRY(json::object asked, parse_object(call.body));
  ObjectReader reader(asked);
  std::string code = reader.text("code", sandbox::kMaxCodeBytes);
  ATOLL_CO_TRY_VOID(reader.finish());
  auto found = co_await named.context->complete(std::move(code));
  json::object answer = completion_json(found.value_or(""));
  co_return std::optional(json_reply(200, answer));
}

http::Task<Reply> interrupt(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(named.sandbox));
  bool interrupted = named.context->interrupt();
  json::object object;
  object["interrupted"] = interrupted;
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> restart(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(named.sandbox));
  named.context->restart();
  ATOLL_CO_TRY_VOID(co_await named.context->wait_ready());
  co_return std::optional(json_reply(200, context_json(*named.context)));
}

http::Task<Reply> remove_context(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(NamedContext named, named_context(call, sandboxes));
  ATOLL_CO_TRY_VOID(co_await sandbox::Pause::wake(named.sandbox));
  ATOLL_CO_TRY_VOID(co_await named.sandbox->contexts().remove(named.context));
  http::Response response;
  response.status = 204;
  co_return std::optional(std::move(response));
}

}  // namespace

std::vector<std::string> parse_variables(ObjectReader& reader) {
  std::vector<std::string> variables;
  for (const auto& [name, value] :
       reader.text_pairs("env", kMaxVariables, agent::kMaxTextBytes / 2)) {
    if (!sandbox::is_variable_name(name))
      reader.refuse("env", "has a name that no variable can have");
    variables.push_back(name + "=" + value);
  }
  return variables;
}

Result<NamedContext> named_context(Call& call, Sandboxes& sandboxes) {
  ATOLL_TRY(std::shared_ptr<Sandbox> sandbox, named_sandbox(call, sandboxes));
  auto id = ContextId::parse(call.parameters.at(1));
  auto context = id ? sandbox->contexts().find(*id) : nullptr;
  if (!context) return no_such_context();
  return NamedContext{std::move(sandbox), std::move(context)};
}

void add_context_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) { return action(call, sandboxes); };
  };
  const std::string base = "/v1/sandboxes/{id}/contexts";
  router.add({.method = Method::kPost,
              .pattern = base,
              .action = bind(create_context),
              .effect = Route::Effect::kCreates,
              .time = Route::Time::kLong});
  router.add({Method::kGet, base, bind(list_contexts)});
  router.add({Method::kGet, base + "/{context}", bind(show_context)});
  router.add({Method::kDelete, base + "/{context}", bind(remove_context)});
  router.add({Method::kPost, base + "/{context}/interrupt", bind(interrupt)});
  router.add({Method::kPost, base + "/{context}/complete", bind(complete)});
  router.add({.method = Method::kPost,
              .pattern = base + "/{context}/restart",
              .action = bind(restart),
              .time = Route::Time::kLong});
  add_context_run_routes(router, sandboxes);
}

}  // namespace atl::api::v1
