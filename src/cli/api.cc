#include "cli/api.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/utf8.h"
#include "cli/base64.h"
#include "cli/command_line.h"

namespace atl::cli {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

// How much longer than the exec itself its answer may take.
constexpr milliseconds kAnswerTime{30'000};
constexpr size_t kMaxPages = 10'000;
constexpr size_t kMaxErrorBytes = 64 * 1024;

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

json::object object_of(const Pairs& pairs) {
  json::object object;
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

bool is_success(int status) { return status >= 200 && status <= 299; }

}  // namespace

Result<Api> connect(const CommandLine& line) {
  ATOLL_TRY(Server server, find_server(line.places, line.server));
  return Api(std::move(server));
}

// Ids come from the user.
Result<std::string> sandbox_target(const std::string& id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (id.empty() || id.size() > 64 || id.find_first_not_of(kAllowed) != id.npos)
    return Error(Code::kInvalid, "\"" + id + "\" is not the id or name of a sandbox");
  return "/v1/sandboxes/" + id;
}

Result<std::string> exec_target(const std::string& sandbox, const std::string& exec) {
  ATOLL_TRY(std::string target, sandbox_target(sandbox));
  return target + "/execs/" + percent_encode(exec);
}

std::string percent_encode(std::string_view text, std::string_view kept) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || kept.find(c) != kept.npos)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

json::object create_body(const SandboxOptions& options) {
  json::object limits = limits_body(options.exec);
  add(limits, "cpu", options.cpu);
  add(limits, "memory_bytes", options.memory_bytes);
  add(limits, "pids", options.pids);
  add(limits, "disk_bytes", options.disk_bytes);
  add(limits, "disk_bytes_per_second", options.disk_bytes_per_second);
  add(limits, "on_oom", options.on_oom);
  json::object body;
  add(body, "snapshot", options.snapshot);
  if (!options.snapshot) body["template"] = options.template_name;
  if (!options.name.empty()) body["name"] = options.name;
  if (options.on_name_conflict == SandboxOptions::Conflict::kUse) body["on_name_conflict"] = "use";
  add(body, "isolation", options.isolation);
  if (!limits.empty()) body["limits"] = std::move(limits);
  json::array require;
  for (const std::string& name : options.require) require.emplace_back(name);
  if (!require.empty()) body["require"] = std::move(require);
  json::array allow;
  for (const std::string& rule : options.allow) allow.emplace_back(rule);
  json::object network;
  if (!allow.empty()) network["allow"] = std::move(allow);
  if (!options.secrets.empty())
    network["secrets"] = json::array(options.secrets.begin(), options.secrets.end());
  if (!network.empty()) body["network"] = std::move(network);
  json::array volumes;
  for (const VolumeMount& volume : options.volumes)
    volumes.push_back(
        json::object{{"name", volume.name}, {"path", volume.path}, {"mode", volume.mode}});
  if (!volumes.empty()) body["volumes"] = std::move(volumes);
  add(body, "persistence", options.persistence);
  add(body, "ttl_ms", options.ttl);
  add(body, "idle_ttl_ms", options.idle_ttl);
  add(body, "on_ttl", options.on_ttl);
  if (options.auto_resume) body["auto_resume"] = true;
  add(body, "files_only_after_ms", options.files_only_after);
  if (options.files_only_under_pressure) body["files_only_under_pressure"] = true;
  if (!options.env.empty()) body["env"] = object_of(options.env);
  if (!options.metadata.empty()) body["metadata"] = object_of(options.metadata);
  return body;
}

json::object exec_body(const ExecOptions& options) {
  json::object body;
  json::object limits = limits_body(options.limits);
  if (!limits.empty()) body["limits"] = std::move(limits);
  add(body, "on_output_limit", options.on_output_limit);
  add(body, "timeout_ms", options.timeout);
  add(body, "user", options.user);
  add(body, "cwd", options.cwd);
  if (!options.env.empty()) body["env"] = object_of(options.env);
  return body;
}

Result<json::array> command_words(const std::vector<std::string>& command) {
  json::array words;
  for (const std::string& argument : command) {
    if (!is_utf8(argument) || argument.find('\0') != argument.npos)
      return Error(Code::kInvalid, "an argument of the command is not UTF-8 text");
    words.emplace_back(argument);
  }
  return words;
}

Error explain_failure(int status, std::string_view body) {
  std::string message = "the server answers " + std::to_string(status);
  auto answer = parse_object(body);
  const json::value* error = answer ? answer->if_contains("error") : nullptr;
  if (error == nullptr || !error->is_object()) return Error(code_of(status), std::move(message));
  const json::object& details = error->as_object();
  message = text_or(details, "message", message);
  std::string field = text_or(details, "field", "");
  if (!field.empty() && message.find(field) == message.npos) message = field + ": " + message;
  std::string code = text_or(details, "code", "");
  if (!code.empty()) message = code + ": " + message;
  std::string remedy = text_or(details, "remedy", "");
  if (!remedy.empty()) message += "\n  remedy: " + remedy;
  std::string request = text_or(details, "request_id", "");
  if (status >= 500 && !request.empty()) message += "\n  request: " + request;
  return Error(code_of(status), std::move(message)).with_reason(code);
}

Result<std::string> output_bytes(const json::object& object, std::string_view name) {
  std::string encoded = text_or(object, std::string(name) + "_base64", "");
  if (!encoded.empty()) return decode_base64(encoded);
  return text_or(object, name, "");
}

http::Headers Api::headers_of(const Call& call) const {
  http::Headers headers = call.headers;
  headers.add("Authorization", "Bearer " + server_.key);
  return headers;
}

std::string Api::named() const {
  return "ask " + ListenAddress{server_.host, server_.port}.string();
}

Result<http::Response> Api::send(const Call& call) {
  auto client = http::Client::create(server_.host, server_.port, call.timeout);
  http::Headers headers = headers_of(call);
  std::string body;
  bool has_body = call.method == http::Method::kPost || call.method == http::Method::kPut ||
                  call.method == http::Method::kPatch;
  if (has_body) {
    headers.add("Content-Type", "application/json");
    body = json::serialize(call.body);
  }
  auto response = client->send(call.method, call.target, headers, std::move(body));
  if (!response) return std::move(response).error().with_context(named());
  if (!is_success(response->status)) return explain_failure(response->status, response->body);
  return response;
}

Result<json::object> Api::call(const Call& call) {
  ATOLL_TRY(http::Response response, send(call));
  if (response.body.empty()) return json::object();
  return parse_object(response.body);
}

Result<http::Response> Api::stream(const Call& call,
                                   std::function<bool(std::string_view)> on_bytes) {
  auto client = http::Client::create(server_.host, server_.port, call.timeout);
  std::string failure;
  auto sink = [&](const http::Response& head, std::string_view bytes) {
    if (is_success(head.status)) return on_bytes(bytes);
    failure.append(bytes);
    return failure.size() < kMaxErrorBytes;
  };
  http::Headers headers = headers_of(call);
  std::string body;
  if (call.method == http::Method::kPost) {
    headers.add("Content-Type", "application/json");
    body = json::serialize(call.body);
  }
  auto response = client->stream(call.method, call.target, headers, body, sink);
  if (!response) return std::move(response).error().with_context(named());
  if (!is_success(response->status)) return explain_failure(response->status, failure);
  return response;
}

Result<void> Api::events(const Call& call,
                         std::function<bool(const http::ReceivedEvent&)> on_event) {
  Call asked = call;
  asked.headers.add("Accept", "text/event-stream");
  http::EventParser parser;
  bool more = true;
  Result<void> parsed;
  auto on_bytes = [&](std::string_view bytes) {
    parsed = parser.feed(bytes, [&](const http::ReceivedEvent& event) {
      if (more) more = on_event(event);
    });
    return more && parsed.ok();
  };
  ATOLL_TRY(http::Response response, stream(asked, on_bytes));
  ATOLL_TRY_VOID(std::move(parsed));
  if (response.headers.find("content-type").value_or("").starts_with("text/event-stream"))
    return {};
  return Error(Code::kUnsupported, "the server has no event stream at " + call.target);
}

Result<json::object> Api::upload(const Call& call, http::Upload body) {
  auto client = http::Client::create(server_.host, server_.port, call.timeout);
  auto response = client->upload(call.method, call.target, headers_of(call), std::move(body));
  if (!response) return std::move(response).error().with_context(named());
  if (!is_success(response->status)) return explain_failure(response->status, response->body);
  if (response->body.empty()) return json::object();
  return parse_object(response->body);
}

Result<std::unique_ptr<http::WebSocketClient>> Api::open_web_socket(const std::string& target) {
  Call call{.target = target};
  auto opened = http::WebSocketClient::open({server_.host, server_.port, target}, headers_of(call),
                                            call.timeout);
  if (!opened) return std::move(opened).error().with_context(named());
  if (opened->socket) return std::move(opened->socket);
  return explain_failure(opened->refusal.status, opened->refusal.body);
}

Result<json::array> Api::list(const std::string& target, const std::string& name) {
  json::array all;
  std::string page_target = target;
  for (size_t page = 0; page < kMaxPages; ++page) {
    ATOLL_TRY(json::object answer, call({.target = page_target}));
    json::value* rows = answer.if_contains(name);
    if (rows == nullptr || !rows->is_array())
      return Error(Code::kCorrupt, "the server's answer has no list of " + name);
    for (json::value& row : rows->as_array()) all.push_back(std::move(row));
    std::string cursor = text_or(answer, "next_cursor", "");
    if (cursor.empty()) return all;
    page_target =
        target + (target.find('?') == target.npos ? "?" : "&") + "cursor=" + percent_encode(cursor);
  }
  return Error(Code::kCorrupt, "the server's list of " + name + " does not end");
}

Result<json::object> Api::create_sandbox(const SandboxOptions& options) {
  return create_sandbox(create_body(options));
}

Result<json::object> Api::create_sandbox(json::object request) {
  return call(
      {.method = http::Method::kPost, .target = "/v1/sandboxes", .body = std::move(request)});
}

Result<json::object> Api::show_sandbox(const std::string& id) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  return call({.target = target});
}

Result<void> Api::remove_sandbox(const std::string& id) {
  ATOLL_TRY(std::string target, sandbox_target(id));
  auto response = send({.method = http::Method::kDelete, .target = target});
  if (!response) return std::move(response).error();
  return {};
}

Result<json::object> Api::start_exec(const std::string& sandbox, json::object request) {
  ATOLL_TRY(std::string target, sandbox_target(sandbox));
  Call exec{.method = http::Method::kPost, .target = target + "/execs", .body = std::move(request)};
  const json::value* timeout = exec.body.if_contains("timeout_ms");
  if (timeout != nullptr && timeout->is_int64())
    exec.timeout = milliseconds(timeout->as_int64()) + kAnswerTime;
  return call(exec);
}

Result<json::object> Api::show_exec(const std::string& sandbox, const std::string& exec) {
  ATOLL_TRY(std::string target, exec_target(sandbox, exec));
  return call({.target = target});
}

}  // namespace atl::cli
