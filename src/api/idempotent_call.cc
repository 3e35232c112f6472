#include "api/idempotent_call.h"

#include <algorithm>

#include "base/log.h"

namespace atl::api {

namespace {

using sandbox::StoredAnswer;

constexpr std::string_view kHeader = "Idempotency-Key";

Result<std::string> parse_key(const http::Headers& headers) {
  std::string key(headers.find(kHeader).value_or(""));
  bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
  if (headers.count(kHeader) == 1 && printable && !key.empty() &&
      key.size() <= store::kMaxIdempotencyKeyBytes)
    return key;
  return Error(Code::kInvalid, "Idempotency-Key must be 1 to 255 printable ASCII characters")
      .with_reason("invalid_field")
      .with_field(kHeader);
}

// Newlines are in no method and no target, so no two requests give the same text.
std::string text_of(const Call& call) {
  const http::Request& request = call.exchange.request();
  return std::string(http::method_name(request.method)) + "\n" + request.target + "\n" + call.body;
}

StoredAnswer to_stored(const http::Response& response) {
  return {.status = static_cast<uint32_t>(response.status),
          .location = std::string(response.headers.find("Location").value_or("")),
          .body = response.body};
}

http::Response to_response(const StoredAnswer& answer) {
  http::Response response;
  response.status = static_cast<int>(answer.status);
  response.headers.add("Content-Type", "application/json");
  if (!answer.location.empty()) response.headers.add("Location", answer.location);
  response.headers.add("Idempotency-Replayed", "true");
  response.body = answer.body;
  return response;
}

}  // namespace

bool has_idempotency_key(const http::Request& request) {
  return request.headers.find(kHeader).has_value();
}

Result<void> check_idempotency_key(const http::Request& request) {
  if (has_idempotency_key(request)) ATOLL_TRY_VOID(parse_key(request.headers));
  return {};
}

http::Task<Reply> run_once(sandbox::Idempotency& idempotency, Call& call,
                           const RouteAction& action) {
  ATOLL_CO_TRY(std::string text, parse_key(call.exchange.request().headers));
  sandbox::IdempotencyKey key{call.tenant, std::move(text)};
  std::string request = text_of(call);
  ATOLL_CO_TRY(sandbox::Idempotency::Turn turn, co_await idempotency.take(key, request));
  if (turn.answer()) co_return std::optional(to_response(*turn.answer()));
  call.idempotency_key = key;
  call.made = turn.made();
  Reply reply = co_await action(call);
  if (!reply) {
    Error error = std::move(reply).error();
    auto released = co_await idempotency.fail(turn, error);
    if (!released) log_error("idempotency key not released", {released.error()});
    co_return error;
  }
  // A stream: who sends the request again gets another one of what was made.
  if (!reply->has_value()) co_return std::move(reply);
  http::Response response = std::move(**reply);
  StoredAnswer answer = to_stored(response);
  ATOLL_CO_TRY_VOID(co_await idempotency.finish(turn, answer));
  if (turn.made().sandbox) response.headers.add("Idempotency-Replayed", "true");
  co_return std::optional(std::move(response));
}

}  // namespace atl::api
