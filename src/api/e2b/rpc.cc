#include "api/e2b/rpc.h"

#include <algorithm>
#include <charconv>

#include <boost/json/serialize.hpp>

#include "api/base64.h"
#include "api/e2b/envelope.h"
#include "api/e2b/failure.h"
#include "api/json_reader.h"
#include "sandbox/file_call.h"
#include "sandbox/limits.h"

namespace atl::api::e2b {

namespace json = boost::json;

namespace {

constexpr std::string_view kBasic = "Basic ";
constexpr std::chrono::seconds kMaxKeepalive{3600};

std::optional<uint64_t> number_field(const http::Request& request, std::string_view name) {
  auto text = request.headers.find(name);
  if (!text) return std::nullopt;
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  bool whole = error == std::errc() && end == text->data() + text->size();
  return whole ? std::optional(number) : std::nullopt;
}

Route route_of(Plane plane, std::string_view method, RouteAction action) {
  Route route{http::Method::kPost, std::string(kEnvd) + "/" + std::string(method),
              std::move(action)};
  route.admit = [plane](const http::Request& request, const std::vector<std::string>& parameters) {
    return admit(plane, Needs::kAccess, request, parameters);
  };
  return route;
}

RouteAction bound(Plane plane, RpcAction action) {
  return [plane, action](Call& call) { return action(call, plane); };
}

}  // namespace

void add_unary(Router& router, Plane plane, std::string_view method, RouteAction action) {
  Route route = route_of(plane, method, std::move(action));
  route.failure = rpc_failure;
  router.add(std::move(route));
}

void add_unary(Router& router, Plane plane, std::string_view method, RpcAction action) {
  add_unary(router, plane, method, bound(plane, action));
}

void add_streaming(Router& router, Plane plane, std::string_view method, RpcAction action) {
  Route route = route_of(plane, method, bound(plane, action));
  route.body = Route::Body::kStream;
  route.time = Route::Time::kLong;
  route.failure = stream_failure;
  router.add(std::move(route));
}

http::Task<Result<json::object>> read_message(Call& call) {
  auto body = co_await call.exchange.read_body(kMaxBodyBytes);
  if (!body && body.error().code() == Code::kExhausted)
    co_return Error(Code::kInvalid, "the body is over 1 MiB").with_reason("body_too_large");
  if (!body) co_return std::move(body).error();
  auto message = only_message(*body);
  if (!message)
    co_return Error(Code::kInvalid, "the body must be one enveloped message, not compressed")
        .with_reason("invalid_json");
  co_return parse_object(*message);
}

std::optional<std::chrono::milliseconds> timeout_of(const http::Request& request) {
  auto timeout = number_field(request, "Connect-Timeout-Ms");
  if (!timeout) return std::nullopt;
  return std::chrono::milliseconds(std::clamp<uint64_t>(*timeout, 1, sandbox::kMaxTimeoutMs));
}

Patience patience_of(const http::Request& request) {
  Patience patience;
  auto timeout = timeout_of(request);
  if (timeout) patience.deadline = std::chrono::steady_clock::now() + *timeout;
  auto interval = number_field(request, "Keepalive-Ping-Interval");
  if (interval)
    patience.keepalive =
        std::clamp<std::chrono::seconds>(std::chrono::seconds(std::min<uint64_t>(*interval, 3600)),
                                         std::chrono::seconds(1), kMaxKeepalive);
  return patience;
}

Result<std::string> user_of(const http::Request& request, const sandbox::Sandbox& sandbox) {
  auto value = request.headers.find("Authorization");
  if (!value || !value->starts_with(kBasic)) return sandbox.row().user;
  auto decoded = from_base64(value->substr(kBasic.size()));
  std::string name = decoded ? decoded->substr(0, decoded->find(':')) : "";
  auto is_printable = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  bool sound = !name.empty() && name.size() <= agent::kMaxUserBytes &&
               std::all_of(name.begin(), name.end(), is_printable);
  if (!sound)
    return Error(Code::kDenied, "invalid username: '" + sandbox::shown(name) + "'")
        .with_reason("unauthenticated");
  return name;
}

http::Task<Result<void>> RpcStream::start(const json::object& first) {
  http::Headers headers{{"Content-Type", std::string(kStreamType)},
                        {"Cache-Control", "no-store"},
                        {"X-Request-Id", call_.request_id}};
  std::string bytes = envelope(json::serialize(first));
  co_return co_await call_.exchange.start_stream(200, std::move(headers), "", bytes);
}

http::Task<Result<void>> RpcStream::send(const json::object& message) {
  std::string bytes = envelope(json::serialize(message));
  co_return co_await call_.exchange.write(bytes);
}

http::Task<Result<void>> RpcStream::finish() {
  std::string bytes = end_of_stream();
  co_return co_await call_.exchange.finish(bytes);
}

http::Task<Result<void>> RpcStream::finish(const json::object& last) {
  std::string bytes = envelope(json::serialize(last)) + end_of_stream();
  co_return co_await call_.exchange.finish(bytes);
}

http::Task<Result<void>> RpcStream::fail(const Error& error) {
  std::string bytes = end_of_stream(&error);
  co_return co_await call_.exchange.finish(bytes);
}

}  // namespace atl::api::e2b
