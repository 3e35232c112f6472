#include "api/v1/context_json.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "api/base64.h"
#include "api/json_reply.h"
#include "api/v1/exec_event.h"
#include "api/v1/execs.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "sandbox/verdict.h"

namespace atl::api::v1 {

namespace json = boost::json;

namespace {

constexpr size_t kMaxInlineResultBytes = 32 * 1024 * 1024;  // together, in one answer
constexpr size_t kMaxJsonDepth = 32;

std::string time_text(int64_t milliseconds) {
  return to_rfc3339(WallTime{std::chrono::milliseconds(milliseconds)});
}

// JSON stands in the answer as what it is; text that only claims to be stays text.
json::value data_json(std::string_view type, const std::string& data) {
  bool is_json = type == "application/json" || type.ends_with("+json");
  if (!is_json) return json::value(data);
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::error_code error;
  json::value value = json::parse(data, error, {}, options);
  return error ? json::value(data) : value;
}

// What was printed, up to the inline limit.
void add_stream(json::object& object, std::string name, std::string bytes, uint64_t total) {
  object[name + "_bytes"] = total;
  if (bytes.size() < total) bytes.resize(whole_characters(bytes));
  if (is_utf8(bytes)) {
    object[name] = std::move(bytes);
  } else {
    object[name + "_base64"] = to_base64(bytes);
  }
}

void keep(std::string& kept, const std::string& bytes) {
  kept.append(bytes, 0, kMaxInlineBytes - std::min(kMaxInlineBytes, kept.size()));
}

size_t size_of(const sandbox::RunResult& result) {
  size_t bytes = 0;
  for (const auto& [type, data] : result.data) bytes += type.size() + data.size();
  return bytes;
}

}  // namespace

Error no_such_context() {
  return Error(Code::kNotFound, "there is no such context").with_reason("context_not_found");
}

json::object context_json(const sandbox::Context& context) {
  const store::ContextRow& row = context.row();
  json::object object;
  object["id"] = row.id.string();
  object["language"] = row.language;
  object["cwd"] = nullptr;
  if (!row.directory.empty()) object["cwd"] = row.directory;
  object["state"] = context.is_busy() ? "running" : "idle";
  object["interpreter"] = nullptr;
  if (is_utf8(context.interpreter()) && !context.interpreter().empty())
    object["interpreter"] = context.interpreter();
  object["exec"] = nullptr;
  if (row.exec != 0) object["exec"] = "e" + std::to_string(row.exec);
  object["runs"] = row.next_run - 1;
  object["created_at"] = time_text(row.created_at_ms);
  return object;
}

json::object run_summary_json(const store::RunRow& row) {
  json::object object;
  object["run"] = row.number;
  object["context"] = row.context.string();
  object["state"] = row.state;
  object["created_at"] = time_text(row.created_at_ms);
  object["started_at"] = nullptr;
  if (row.started_at_ms != 0) object["started_at"] = time_text(row.started_at_ms);
  object["timeout_ms"] = row.timeout_ms;
  bool ended = row.state == "ended";
  object["verdict"] = nullptr;
  if (ended) object["verdict"] = row.verdict;
  if (!ended) return object;
  json::array limits;
  for (std::string_view name : sandbox::limit_names(row.limits_hit)) limits.emplace_back(name);
  object["limits_hit"] = std::move(limits);
  object["exit_code"] = nullptr;
  if (row.exit_code) object["exit_code"] = *row.exit_code;
  object["signal"] = nullptr;
  if (row.signal) object["signal"] = *row.signal;
  object["state_lost"] = row.state_lost;
  if (is_utf8(row.failure) && !row.failure.empty()) object["failure"] = row.failure;
  json::object usage;
  usage["wall_ms"] = to_ms(row.wall_us);
  object["usage"] = std::move(usage);
  return object;
}

json::object result_json(const sandbox::RunResult& result) {
  json::object mime;
  for (const auto& [type, data] : result.data) mime[type] = data_json(type, data);
  json::object object;
  object["mime"] = std::move(mime);
  object["main"] = result.is_main;
  return object;
}

json::object error_json(const sandbox::RunError& error) {
  json::object object;
  object["name"] = error.name;
  object["value"] = error.value;
  object["traceback"] = error.traceback;
  return object;
}

json::object completion_json(const std::string& said) {
  json::object object;
  object["start"] = 0;
  object["matches"] = json::array();
  json::value value = data_json("application/json", said);
  if (!value.is_object()) return object;
  const json::value* start = value.get_object().if_contains("start");
  const json::value* matches = value.get_object().if_contains("matches");
  if (!start || !start->is_int64() || start->get_int64() < 0 || !matches || !matches->is_array())
    return object;
  object["start"] = start->get_int64();
  json::array texts;
  for (const json::value& match : matches->get_array())
    if (match.is_string()) texts.push_back(match);
  object["matches"] = std::move(texts);
  return object;
}

Result<json::object> run_json(std::shared_ptr<sandbox::ContextRun> run) {
  json::object object = run_summary_json(run->row());
  sandbox::RunReader reader(run, {});
  std::string printed, warned;
  json::array results;
  size_t result_bytes = 0;
  bool results_cut = false;
  object["error"] = nullptr;
  while (true) {
    ATOLL_TRY(sandbox::RunEvent event, reader.next(kMaxInlineBytes));
    if (auto* output = std::get_if<sandbox::RunOutput>(&event)) {
      keep(output->stream == agent::Stream::kStdout ? printed : warned, output->bytes);
    } else if (auto* result = std::get_if<sandbox::RunResult>(&event)) {
      result_bytes += size_of(*result);
      results_cut = results_cut || result_bytes > kMaxInlineResultBytes;
      if (!results_cut) results.push_back(result_json(*result));
    } else if (auto* error = std::get_if<sandbox::RunError>(&event)) {
      if (object["error"].is_null()) object["error"] = error_json(*error);
    } else {
      break;
    }
  }
  object["results"] = std::move(results);
  if (results_cut) object["results_cut"] = true;
  add_stream(object, "stdout", std::move(printed), reader.position().standard_output);
  add_stream(object, "stderr", std::move(warned), reader.position().standard_error);
  return object;
}

}  // namespace atl::api::v1
