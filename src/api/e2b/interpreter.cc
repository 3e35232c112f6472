#include "api/e2b/interpreter.h"

#include <boost/json/array.hpp>

#include "api/e2b/default_context.h"
#include "api/e2b/execute.h"
#include "api/e2b/failure.h"
#include "api/e2b/path.h"
#include "api/json_reader.h"
#include "api/json_reply.h"

namespace atl::api::e2b {

namespace json = boost::json;
using http::Method;
using sandbox::Context;
using sandbox::Sandbox;

namespace {

json::object context_json(const Context& context) {
  json::object object;
  object["id"] = context.row().id.string();
  object["language"] = context.row().language;
  object["cwd"] = context.row().directory.empty() ? kHome : context.row().directory;
  return object;
}

struct NewContext {
  std::string language, directory;
};

Result<NewContext> parse_context(std::string_view body) {
  json::object object;
  if (!body.empty()) {
    ATOLL_TRY(object, parse_object(body));
  }
  ObjectReader reader(object);
  auto language = language_named(reader.optional_text("language", 32).value_or("python"));
  if (!language) reader.refuse("language", "must be python, javascript, typescript or bash");
  std::string directory = reader.optional_text("cwd", agent::kMaxPathBytes).value_or(kHome);
  ATOLL_TRY_VOID(reader.settle());
  ATOLL_TRY(std::string resolved, resolve_path(directory, "user"));
  return NewContext{*language, std::move(resolved)};
}

http::Task<Reply> create_context(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(NewContext asked, parse_context(call.body));
  ATOLL_CO_TRY(std::shared_ptr<Context> context,
               co_await make_context(sandbox, asked.language, asked.directory));
  co_return std::optional(json_reply(200, context_json(*context)));
}

// The two that E2B's image begins with are there from the start, as far as the image has them.
http::Task<Reply> list_contexts(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  for (std::string language : {"python", "javascript"}) {
    auto made = co_await default_context(sandbox, language);
    bool absent = !made && made.error().reason() == "language_unavailable";
    if (!made && !absent) co_return std::move(made).error();
  }
  json::array items;
  for (const auto& context : sandbox->contexts().all()) items.push_back(context_json(*context));
  co_return std::optional(json_reply(200, items));
}

http::Task<Reply> restart(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(std::shared_ptr<Context> context, named_context(*sandbox, call.parameters.at(1)));
  context->restart();
  ATOLL_CO_TRY_VOID(co_await context->wait_ready());
  co_return std::optional(json_reply(200, nullptr));
}

http::Task<Reply> remove_context(Call& call, Plane plane) {
  ATOLL_CO_TRY(std::shared_ptr<Sandbox> sandbox, running_sandbox(call, plane));
  ATOLL_CO_TRY(std::shared_ptr<Context> context, named_context(*sandbox, call.parameters.at(1)));
  ATOLL_CO_TRY_VOID(co_await sandbox->contexts().remove(context));
  co_return std::optional(json_reply(200, nullptr));
}

http::Task<Reply> health(Call& call, Plane plane) {
  ATOLL_CO_TRY_VOID(running_sandbox(call, plane));
  co_return std::optional(json_reply(200, "OK"));
}

}  // namespace

void add_interpreter_routes(Router& router, Plane plane) {
  auto add = [&router, plane](Method method, const char* path, auto action, Needs needs) {
    Route route{method, std::string(kInterpreter) + path,
                [plane, action](Call& call) { return action(call, plane); }};
    route.failure = text_failure;
    route.time = Route::Time::kLong;
    route.admit = [plane, needs](const http::Request& request,
                                 const std::vector<std::string>& parameters) {
      return admit(plane, needs, request, parameters);
    };
    router.add(std::move(route));
  };
  add(Method::kGet, "/health", health, Needs::kNothing);
  add(Method::kPost, "/execute", execute, Needs::kTraffic);
  add(Method::kPost, "/contexts", create_context, Needs::kTraffic);
  add(Method::kGet, "/contexts", list_contexts, Needs::kTraffic);
  add(Method::kPost, "/contexts/{context}/restart", restart, Needs::kTraffic);
  add(Method::kDelete, "/contexts/{context}", remove_context, Needs::kTraffic);
}

}  // namespace atl::api::e2b
