#include "api/e2b/failure.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "api/e2b/envelope.h"
#include "api/failure.h"
#include "base/log.h"

namespace atl::api::e2b {

namespace json = boost::json;

namespace {

constexpr int kAwayStatus = 502;

struct Named {
  std::string_view reason, code;
};
// Where the code does not follow from the status.
constexpr Named kByReason[] = {
    {"exists", "already_exists"},           {"not_directory", "invalid_argument"},
    {"is_directory", "invalid_argument"},   {"not_regular", "invalid_argument"},
    {"too_many_links", "invalid_argument"}, {"exec_not_running", "not_found"},
    {"stdin_closed", "internal"},           {"file_timeout", "deadline_exceeded"},
};

struct Status {
  int status;
  std::string_view code;
  int answered;  // the status that the Connect protocol has for the code
};
constexpr Status kByStatus[] = {
    {400, "invalid_argument", 400},    {401, "unauthenticated", 401},
    {403, "permission_denied", 403},   {404, "not_found", 404},
    {409, "failed_precondition", 400}, {413, "resource_exhausted", 429},
    {415, "invalid_argument", 400},    {429, "resource_exhausted", 429},
    {501, "unimplemented", 501},       {503, "unavailable", 503},
    {504, "deadline_exceeded", 504},   {507, "resource_exhausted", 429},
};

std::string_view rpc_code(const Error& error) {
  for (const Named& named : kByReason)
    if (error.reason() == named.reason) return named.code;
  int status = failure_status(error);
  for (const Status& row : kByStatus)
    if (row.status == status) return row.code;
  return "internal";
}

int rpc_status(std::string_view code) {
  if (code == "already_exists") return 409;
  for (const Status& row : kByStatus)
    if (row.code == code) return row.answered;
  return 500;
}

// What failed inside the platform is for the log.
std::string message_of(const Error& error) {
  int status = failure_status(error);
  if (status == 500) return "the platform failed; the log has the request id";
  if (status == kAwayStatus) return error.message();
  std::string_view remedy = failure_remedy(error);
  return error.message() + (remedy.empty() ? "" : " (" + std::string(remedy) + ")");
}

http::Response make(int status, std::string type, std::string body, std::string_view request_id) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", std::move(type));
  response.headers.add("X-Request-Id", std::string(request_id));
  if (status == 503 || status == 429) response.headers.add("Retry-After", "1");
  response.body = std::move(body);
  return response;
}

void log_failure(const Error& error, std::string_view request_id) {
  int status = failure_status(error);
  if (status >= 500 && status != 501 && status != kAwayStatus)
    log_error("request failed", {{"request", request_id}, error});
}

bool is_away(const Error& error) { return failure_status(error) == kAwayStatus; }

}  // namespace

http::Response control_failure(const Error& error, std::string_view request_id) {
  log_failure(error, request_id);
  int status = failure_status(error);
  json::object body;
  body["code"] = status;
  body["message"] = message_of(error);
  return make(status, "application/json", json::serialize(body), request_id);
}

std::string rpc_error_text(const Error& error) {
  json::object body;
  body["code"] = rpc_code(error);
  body["message"] = message_of(error);
  return json::serialize(body);
}

http::Response rpc_failure(const Error& error, std::string_view request_id) {
  if (is_away(error)) return control_failure(error, request_id);
  log_failure(error, request_id);
  int status = rpc_status(rpc_code(error));
  return make(status, "application/json", rpc_error_text(error), request_id);
}

http::Response stream_failure(const Error& error, std::string_view request_id) {
  if (is_away(error)) return control_failure(error, request_id);
  log_failure(error, request_id);
  std::string end = end_of_stream(&error);
  return make(200, std::string(kStreamType), std::move(end), request_id);
}

http::Response text_failure(const Error& error, std::string_view request_id) {
  if (is_away(error)) return control_failure(error, request_id);
  log_failure(error, request_id);
  return make(failure_status(error), "text/plain; charset=utf-8", message_of(error), request_id);
}

}  // namespace atl::api::e2b
