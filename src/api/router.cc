#include "api/router.h"

#include <algorithm>

#include "api/failure.h"
#include "api/idempotent_call.h"
#include "api/port_host.h"
#include "base/ids.h"
#include "base/log.h"

namespace atl::api {

namespace {

constexpr size_t kRequestIdLength = 16;
constexpr std::string_view kBearer = "Bearer ";

bool is_loopback_name(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

bool is_json(const http::Request& request) {
  auto type = request.headers.find("Content-Type");
  if (!type) return false;
  std::string_view value = type->substr(0, type->find(';'));
  while (value.ends_with(' ')) value.remove_suffix(1);
  return value == "application/json";
}

std::string name_of(const Route& route) {
  return std::string(method_name(route.method)) + " " + route.pattern;
}

// Empty if there is none, or more than one.
std::string_view key_of(const http::Request& request, const Route* route) {
  bool bearer = !route || route->credential == Route::Credential::kBearer;
  std::string_view name = bearer ? "Authorization" : "X-API-Key";
  auto value = request.headers.find(name);
  if (!value || request.headers.count(name) != 1) return {};
  if (!bearer) return *value;
  return value->starts_with(kBearer) ? value->substr(kBearer.size()) : std::string_view();
}

Error refusal(Code code, std::string message, std::string_view reason) {
  return Error(code, std::move(message)).with_reason(reason);
}

// What those who need no key are counted as: by whoever signed their URL.
std::string name_of(store::TenantId tenant) { return "tenant " + std::to_string(tenant.number()); }

http::Response refuse_method(std::string_view allowed, std::string_view request_id) {
  http::Response response = refusal_response(405, "method_not_allowed",
                                             "the route does not know this method", request_id);
  response.headers.add("Allow", std::string(allowed));
  return response;
}

Error body_refusal(const Error& error) {
  if (error.code() == Code::kExhausted)
    return refusal(Code::kInvalid, "the body is over 1 MiB", "body_too_large");
  if (error.code() == Code::kInvalid)
    return refusal(Code::kInvalid, error.message(), "malformed_request");
  if (error.code() == Code::kTimeout)
    return refusal(Code::kTimeout, "the body did not come", "request_timeout");
  return error;
}

}  // namespace

Router::Router(sandbox::Keys& keys, sandbox::Idempotency& idempotency, Traffic& traffic,
               std::set<std::string, std::less<>> host_names)
    : keys_(keys),
      idempotency_(idempotency),
      traffic_(traffic),
      host_names_(std::move(host_names)) {}

void Router::add(Route route) {
  RoutePattern pattern(route.pattern);
  routes_.push_back({std::move(route), std::move(pattern)});
}

std::string Router::listing() const {
  std::string lines;
  for (const Known& known : routes_) lines += name_of(known.route) + "\n";
  return lines;
}

http::Response Router::refuse(int status, std::string_view reason) {
  std::string request_id = random_text(kRequestIdLength);
  std::string_view code = status == 500   ? "internal"
                          : status == 503 ? "no_capacity"
                          : status == 408 ? "request_timeout"
                                          : "malformed_request";
  return refusal_response(status, code, reason, request_id);
}

bool Router::is_known_host(std::string_view host) const {
  std::string name = name_of_host(host);
  return is_loopback_name(name) || host_names_.contains(name);
}

std::optional<PortHost> Router::find_port_host(const http::Request& request) const {
  auto host = request.headers.find("Host");
  auto found = host ? parse_port_host(name_of_host(*host)) : std::nullopt;
  // An address has no names beneath it.
  bool ours = found && (found->domain == "localhost" || host_names_.contains(found->domain));
  return ours ? found : std::nullopt;
}

// A page of another site may be able to reach loopback (also by rebinding its own name), but it
// cannot choose the Host and Origin that its browser sends.
Result<void> Router::check_origin(const http::Request& request) const {
  auto host = request.headers.find("Host");
  bool is_port = find_port_host(request).has_value();
  if (!host || !(is_port || is_known_host(*host)))
    return refusal(Code::kInvalid, "this server does not answer to that host name", "wrong_host");
  auto origin = request.headers.find("Origin");
  if (!origin) return {};
  size_t scheme = origin->find("://");
  std::string_view from = scheme == origin->npos ? "" : origin->substr(scheme + 3);
  // A page of a port is of that port's site and of no other.
  bool same_port = is_port && name_of_host(from) == name_of_host(*host);
  if (!is_known_host(from) && !same_port)
    return refusal(Code::kDenied, "requests from pages of other sites are refused", "cross_site");
  return {};
}

http::Task<Result<sandbox::Identity>> Router::authenticate(const http::Exchange& exchange,
                                                           const Route* route) {
  Error refused = refusal(Code::kDenied, "the key is missing or wrong", "unauthenticated");
  std::string_view key = key_of(exchange.request(), route);
  if (key.empty()) co_return refused;
  // Whatever others send from the same address, a key that was right before is served.
  if (auto known = keys_.recall(key)) co_return *known;
  const std::string& address = exchange.peer_network();
  ATOLL_CO_TRY_VOID(traffic_.count_unknown_key(address));
  ATOLL_CO_TRY(auto identity, co_await keys_.identify(key));
  if (!identity) co_return refused;
  traffic_.forgive(address);
  co_return *identity;
}

// Without a key nobody learns which routes exist.
http::Task<Result<store::TenantId>> Router::admit(const http::Exchange& exchange,
                                                  const Match& found) {
  const http::Request& request = exchange.request();
  if (found.route && found.route->access == Route::Access::kPublic) co_return store::kLocalTenant;
  if (found.route && found.route->admit) {
    ATOLL_CO_TRY(auto tenant, found.route->admit(request, found.parameters));
    if (tenant) ATOLL_CO_TRY_VOID(traffic_.count_request(name_of(*tenant)));
    if (tenant) co_return *tenant;
    // A key is counted where it is looked up.
    if (key_of(request, found.route).empty())
      ATOLL_CO_TRY_VOID(traffic_.count_unknown_key(exchange.peer_network()));
  }
  ATOLL_CO_TRY(sandbox::Identity identity, co_await authenticate(exchange, found.route));
  ATOLL_CO_TRY_VOID(traffic_.count_request(identity.key_id));
  if (found.route && found.route->access == Route::Access::kOperator &&
      identity.role != sandbox::Identity::Role::kOperator)
    co_return refusal(Code::kDenied, "only the operator of this host may do that", "operator_only");
  co_return identity.tenant;
}

Router::Match Router::match(const http::Exchange& exchange) const {
  const http::Request& request = exchange.request();
  Match match;
  auto origin = check_origin(request);
  if (!origin) match.refused = std::move(origin).error();
  // Nothing but the port is reached under its host.
  Sender sender{find_port_host(request), exchange.peer_network()};
  std::string path = sender.port_host ? port_path(*sender.port_host, request) : request.path;
  // Before that, it is not known what there is to be located.
  if (locate_ && ready_ && !match.refused) {
    if (auto located = locate_(request, sender)) {
      path = std::move(located->path);
      match.refused = std::move(located->refused);
    }
  }
  PathParts parts(path);
  http::Method method = request.method == http::Method::kHead ? http::Method::kGet : request.method;
  for (const auto& [route, pattern] : routes_) {
    auto parameters = pattern.fit(parts);
    if (!parameters) continue;
    if (route.method == method) {
      match.route = &route;
      match.parameters = std::move(*parameters);
      return match;
    }
    match.allowed += (match.allowed.empty() ? "" : ", ") + std::string(method_name(route.method));
  }
  return match;
}

http::Task<Result<std::string>> Router::read_body(http::Exchange& exchange, const Route& route) {
  if (route.body == Route::Body::kStream) co_return std::string();
  auto body = co_await exchange.read_body(kMaxBodyBytes);
  if (!body) co_return body_refusal(body.error());
  if (!body->empty() && !is_json(exchange.request()))
    co_return refusal(Code::kInvalid, "the body must be application/json",
                      "unsupported_media_type");
  co_return body;
}

http::Task<void> Router::serve(http::Exchange& exchange) {
  Match found = match(exchange);
  std::string request_id = random_text(kRequestIdLength);
  bool answered = false;
  auto response = co_await answer(exchange, found, request_id, answered);
  if (!answered) {
    auto failure = found.route && found.route->failure ? found.route->failure : failure_response;
    if (!response) response = failure(response.error(), request_id);
    Result<void> sent = co_await exchange.reply(std::move(*response));
    if (!sent) log_debug("answer not delivered", {{"request", request_id}, sent.error()});
  }
  std::string name = found.route ? name_of(*found.route) : "";
  ++answered_[{std::move(name), exchange.status()}];
}

http::Task<Result<http::Response>> Router::answer(http::Exchange& exchange, Match& found,
                                                  std::string& request_id, bool& answered) {
  const http::Request& request = exchange.request();
  if (found.refused) co_return std::move(*found.refused);
  bool is_public = found.route && found.route->access == Route::Access::kPublic;
  if (!ready_ && !is_public)
    co_return refusal(Code::kUnavailable, "the server is taking up its sandboxes", "not_ready");
  ATOLL_CO_TRY(store::TenantId tenant, co_await admit(exchange, found));
  if (!is_public) http::set_known(exchange);
  if (!found.route && found.allowed.empty())
    co_return refusal(Code::kNotFound, "there is no such route", "not_found");
  if (!found.route) co_return refuse_method(found.allowed, request_id);
  auto body = co_await read_body(exchange, *found.route);
  if (!body && body.error().code() == Code::kCancelled) {
    answered = true;  // the peer has gone
    co_return http::Response();
  }
  if (!body) co_return std::move(body).error();
  bool once = found.route->effect == Route::Effect::kCreates && has_idempotency_key(request);
  bool is_long = found.route->time == Route::Time::kLong || once;
  auto place = is_long ? traffic_.enter(tenant) : Result<Traffic::Place>(Traffic::Place());
  if (!place) co_return std::move(place).error();
  Call call{exchange, tenant, std::move(found.parameters), std::move(*body), request_id};
  const RouteAction& action = found.route->action;
  http::Task<Reply> task = once ? run_once(idempotency_, call, action) : action(call);
  ATOLL_CO_TRY(std::optional<http::Response> response, co_await std::move(task));
  if (!response) {
    answered = true;
    co_return http::Response();
  }
  if (!response->headers.find("X-Request-Id")) response->headers.add("X-Request-Id", request_id);
  co_return std::move(*response);
}

}  // namespace atl::api
