#include "api/v1/secrets.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/json_reader.h"
#include "api/json_reply.h"
#include "egress/secret.h"
#include "sandbox/secrets.h"

namespace atl::api::v1 {

namespace json = boost::json;
using sandbox::Sandboxes;
using sandbox::Secrets;

namespace {

Error no_such_secret(const std::string& name) {
  return Error(Code::kNotFound, "there is no secret " + name).with_reason("secret_not_found");
}

json::object to_object(const std::string& text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  return value.is_object() ? value.get_object() : json::object();
}

http::Response empty_answer() {
  http::Response response;
  response.status = 204;
  return response;
}

http::Task<Reply> put(Call& call, Secrets secrets) {
  ATOLL_CO_TRY(json::object body, parse_object(call.body));
  ATOLL_CO_TRY(egress::Secret secret, egress::parse_secret(call.parameters.at(0), body));
  ATOLL_CO_TRY(Secrets::Put put, co_await secrets.put(std::move(secret)));
  json::object shown = to_object(put.shown);
  co_return std::optional(json_reply(put.is_new ? 201 : 200, shown));
}

http::Task<Reply> list_secrets(Call&, Secrets secrets) {
  ATOLL_CO_TRY(auto shown, co_await secrets.list());
  json::array items;
  for (const auto& [name, text] : shown) items.push_back(to_object(text));
  json::object object;
  object["secrets"] = std::move(items);
  co_return std::optional(json_reply(200, object));
}

http::Task<Reply> show_secret(Call& call, Secrets secrets) {
  std::string name = call.parameters.at(0);
  ATOLL_CO_TRY(auto shown, co_await secrets.list());
  auto found = shown.find(name);
  if (found == shown.end()) co_return no_such_secret(name);
  co_return std::optional(json_reply(200, to_object(found->second)));
}

http::Task<Reply> remove_secret(Call& call, Secrets secrets) {
  std::string name = call.parameters.at(0);
  auto removed = co_await secrets.remove(name);
  if (!removed && removed.error().code() == Code::kNotFound) co_return no_such_secret(name);
  if (!removed) co_return std::move(removed).error();
  co_return std::optional(empty_answer());
}

}  // namespace

void add_secret_routes(Router& router, Sandboxes& sandboxes) {
  using http::Method;
  auto bind = [&sandboxes](auto action) {
    return [&sandboxes, action](Call& call) {
      return action(call, Secrets(sandboxes.services().driver, call.tenant));
    };
  };
  router.add({Method::kGet, "/v1/secrets", bind(list_secrets)});
  router.add({Method::kGet, "/v1/secrets/{name}", bind(show_secret)});
  router.add({Method::kPut, "/v1/secrets/{name}", bind(put)});
  router.add({Method::kDelete, "/v1/secrets/{name}", bind(remove_secret)});
}

}  // namespace atl::api::v1
