#include "cli/api.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/utf8.h"
#include "cli/base64.h"

namespace atl::cli {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr milliseconds kCallTime{60'000};
// For an exec without a time limit of its own.
constexpr milliseconds kLongestExec = std::chrono::hours(24);
// How much longer than the exec itself its answer may take.
constexpr milliseconds kAnswerTime{30'000};
constexpr size_t kMaxPages = 10'000;

Code code_of(int status) {
  switch (status) {
    case 400:
    case 422:
      return Code::kInvalid;
    case 401:
    case 403:
      return Code::kDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kConflict;
    case 429:
    case 507:
      return Code::kExhausted;
    default:
      return Code::kUnavailable;
  }
}

std::string text_or(const json::object& object, std::string_view name, std::string_view otherwise) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return std::string(otherwise);
  return std::string(value->as_string().c_str(), value->as_string().size());
}

Result<json::object> parse_object(std::string_view body) {
  json::error_code error;
  json::value value = json::parse({body.data(), body.size()}, error);
  if (error || !value.is_object())
    return Error(Code::kCorrupt, "the server's answer is not a JSON object");
  return std::move(value.as_object());
}

// Ids come from the user: nothing but an id may stand in a path.
Result<std::string> sandbox_target(const std::string& id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789";
  if (id.empty() || id.size() > 64 || id.find_first_not_of(kAllowed) != id.npos)
    return Error(Code::kInvalid, "\"" + id + "\" is not a sandbox id");
  return "/v1/sandboxes/" + id;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain)
      out += static_cast<char>(c);
    else
      out += {'%', kHex[c >> 4], kHex[c & 15]};
  }
  return out;
}

template <typename T>
void add(json::object& object, std::string_view name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}

void add(json::object& object, std::string_view name, const std::optional<milliseconds>& value) {
  if (value) object[name] = value->count();
}

json::object limits_body(const ExecLimits& limits) {
  json::object object;
  add(object, "cpu_time_ms", limits.cpu_time);
  add(object, "output_bytes", limits.output_bytes);
  add(object, "open_files", limits.open_files);
  return object;
}

}  // namespace

json::object create_body(const SandboxOptions& options) {
  json::object limits = limits_body(options.exec);
  add(limits, "cpu", options.cpu);
  add(limits, "memory_bytes", options.memory_bytes);
  add(limits, "pids", options.pids);
  add(limits, "disk_bytes", options.disk_bytes);
  add(limits, "disk_bytes_per_second", options.disk_bytes_per_second);
  add(limits, "on_oom", options.on_oom);
  json::object body;
  body["template"] = options.template_name;
  if (!limits.empty()) body["limits"] = std::move(limits);
  json::array require;
  for (const std::string& name : options.require) require.emplace_back(name);
  if (!require.empty()) body["require"] = std::move(require);
  add(body, "ttl_ms", options.ttl);
  add(body, "idle_ttl_ms", options.idle_ttl);
  return body;
}

Error explain_failure(int status, std::string_view body) {
  auto answer = parse_object(body);
  const json::value* error = answer ? answer->if_contains("error") : nullptr;
  if (error == nullptr || !error->is_object())
    return Error(code_of(status), "the server answers " + std::to_string(status));
  const json::object& details = error->as_object();
  std::string message = text_or(details, "message", "the server answers " + std::to_string(status));
  std::string field = text_or(details, "field", "");
  if (!field.empty() && message.find(field) == message.npos) message = field + ": " + message;
  std::string remedy = text_or(details, "remedy", "");
  if (!remedy.empty()) message += "\n  remedy: " + remedy;
  std::string request = text_or(details, "request_id", "");
  if (status >= 500 && !request.empty()) message += "\n  request: " + request;
  return Error(code_of(status), std::move(message));
}

Result<std::string> output_bytes(const json::object& exec, std::string_view stream) {
  std::string encoded = text_or(exec, std::string(stream) + "_base64", "");
  if (!encoded.empty()) return decode_base64(encoded);
  return text_or(exec, stream, "");
}

Result<http::Response> Api::send(const Call& call) {
  auto client = http::Client::create(server_.host, server_.port, call.timeout);
  http::Headers headers = {{"Authorization", "Bearer " + server_.key}};
  std::string body;
  if (call.method == http::Method::kPost) {
    headers.add("Content-Type", "application/json");
    body = json::serialize(call.body);
  }
  auto response = client->send(call.method, call.target, headers, std::move(body));
  if (!response)
    return std::move(response).error().with_context(
        "ask " + ListenAddress{server_.host, server_.port}.string());
  if (response->status < 200 || response->status > 299)
    return explain_failure(response->status, response->body);
  return response;
}

Result<json::object> Api::call(const Call& call) {
  ATOLL_TRY(http::Response response, send(call));
  return parse_object(response.body);
}

Result<json::object> Api::create_sandbox(const SandboxOptions& options) {
  return call({http::Method::kPost, "/v1/sandboxes", create_body(options), kCallTime});
}

Result<json::object> Api::create_sandbox(json::object request) {
  return call({http::Method::kPost, "/v1/sandboxes", std::move(request), kCallTime});
}

Result<json::object> Api::show_sandbox(const std::string& id) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  return call({http::Method::kGet, target, {}, kCallTime});
}

Result<json::object> Api::show_receipt(const std::string& id) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  return call({http::Method::kGet, target + "/receipt", {}, kCallTime});
}

Result<json::array> Api::list_sandboxes() {
  json::array all;
  std::string target = "/v1/sandboxes";
  for (size_t page = 0; page < kMaxPages; ++page) {
    ATOLL_TRY(json::object answer, call({http::Method::kGet, target, {}, kCallTime}));
    json::value* rows = answer.if_contains("sandboxes");
    if (rows == nullptr || !rows->is_array())
      return Error(Code::kCorrupt, "the server's answer has no list of sandboxes");
    for (json::value& row : rows->as_array()) all.push_back(std::move(row));
    std::string cursor = text_or(answer, "next_cursor", "");
    if (cursor.empty()) return all;
    target = "/v1/sandboxes?cursor=" + percent_encode(cursor);
  }
  return Error(Code::kCorrupt, "the server's list of sandboxes does not end");
}

Result<void> Api::remove_sandbox(const std::string& id) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  auto response = send({http::Method::kDelete, target, {}, kCallTime});
  if (!response) return std::move(response).error();
  return {};
}

Result<json::object> Api::create_key(const std::string& tenant, const std::string& name) {
  json::object body;
  if (!tenant.empty()) body["tenant"] = tenant;
  if (!name.empty()) body["name"] = name;
  return call({http::Method::kPost, "/v1/keys", std::move(body), kCallTime});
}

Result<json::array> Api::list_keys() {
  ATOLL_TRY(json::object answer, call({http::Method::kGet, "/v1/keys", {}, kCallTime}));
  json::value* keys = answer.if_contains("keys");
  if (keys == nullptr || !keys->is_array())
    return Error(Code::kCorrupt, "the server's answer has no list of keys");
  return std::move(keys->as_array());
}

Result<void> Api::revoke_key(const std::string& id) {
  auto response = send({http::Method::kDelete, "/v1/keys/" + percent_encode(id), {}, kCallTime});
  if (!response) return std::move(response).error();
  return {};
}

Result<json::object> Api::run_exec(const ExecRequest& request) {
  ATOLL_TRY(std::string target, sandbox_target(request.sandbox));
  json::array command;
  for (const std::string& argument : request.command) {
    if (!is_utf8(argument) || argument.find('\0') != argument.npos)
      return Error(Code::kInvalid, "an argument of the command is not UTF-8 text");
    command.emplace_back(argument);
  }
  json::object body = {{"cmd", std::move(command)}, {"wait", true}};
  json::object limits = limits_body(request.limits);
  if (!limits.empty()) body["limits"] = std::move(limits);
  add(body, "on_output_limit", request.on_output_limit);
  milliseconds longest = kLongestExec;
  if (request.timeout.count() > 0) {
    body["timeout_ms"] = request.timeout.count();
    longest = request.timeout;
  }
  return call({http::Method::kPost, target + "/execs", std::move(body), longest + kAnswerTime});
}

Result<json::object> Api::start_exec(const std::string& sandbox, json::object request) {
  ATOLL_TRY(std::string target, sandbox_target(sandbox));
  milliseconds longest = kCallTime;
  const json::value* timeout = request.if_contains("timeout_ms");
  if (timeout != nullptr && timeout->is_int64())
    longest = milliseconds(timeout->as_int64()) + kAnswerTime;
  return call({http::Method::kPost, target + "/execs", std::move(request), longest});
}

Result<json::object> Api::show_exec(const std::string& sandbox, const std::string& exec) {
  ATOLL_TRY(std::string target, sandbox_target(sandbox));
  return call({http::Method::kGet, target + "/execs/" + percent_encode(exec), {}, kCallTime});
}

}  // namespace atl::cli
