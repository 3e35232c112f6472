#include "api/v1/exec_json.h"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/base64.h"
#include "api/json_reply.h"
#include "api/v1/execs.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace atl::api::v1 {

namespace json = boost::json;

namespace {

json::object usage_json(const store::ExecRow& row) {
  json::object usage;
  usage["wall_ms"] = to_ms(row.wall_us);
  usage["user_ms"] = to_ms(row.user_us);
  usage["system_ms"] = to_ms(row.system_us);
  usage["peak_memory_bytes"] = row.peak_memory_bytes;
  usage["read_bytes"] = row.read_bytes;
  usage["written_bytes"] = row.written_bytes;
  // Figures that this host cannot attribute to one exec.
  if (row.peak_memory_scope != "exec") {
    json::object scope;
    scope["peak_memory_bytes"] = row.peak_memory_scope;
    usage["scope"] = std::move(scope);
  }
  return usage;
}

json::array limits_hit_json(const store::ExecRow& row) {
  json::array names;
  for (std::string_view name : sandbox::limit_names(row.limits_hit)) names.emplace_back(name);
  return names;
}

json::object timings_json(const store::ExecRow& row) {
  json::object timings;
  timings["start_ms"] = to_ms(row.start_us);
  timings["run_ms"] = to_ms(row.wall_us);
  timings["drain_ms"] = to_ms(row.drain_us);
  return timings;
}

Result<void> add_stream(json::object& object, const sandbox::Exec& exec, agent::Stream stream) {
  ATOLL_TRY(std::string bytes, exec.output().read(stream, 0, kMaxInlineBytes));
  std::string name = stream == agent::Stream::kStdout ? "stdout" : "stderr";
  // A character that the inline limit cuts in two must not turn all of it into base 64.
  if (bytes.size() == kMaxInlineBytes) {
    size_t tail = bytes.size();
    while (tail > bytes.size() - 4 && (static_cast<unsigned char>(bytes[tail - 1]) & 0xc0) == 0x80)
      --tail;
    if (tail > 0 && utf8_sequence_length(std::string_view(bytes).substr(tail - 1)) == 0)
      bytes.resize(tail - 1);
  }
  if (is_utf8(bytes)) {
    object[name] = std::move(bytes);
  } else {
    object[name + "_base64"] = to_base64(bytes);
  }
  return {};
}

}  // namespace

std::string describe(const sandbox::ExecRequest& request) {
  json::object object;
  json::array command;
  for (const std::string& argument : request.arguments) command.emplace_back(argument);
  object["cmd"] = std::move(command);
  object["cwd"] = nullptr;
  if (!request.directory.empty()) object["cwd"] = request.directory;
  object["user"] = request.user;
  object["timeout_ms"] = request.timeout_ms;
  json::object limits;
  limits["cpu_time_ms"] = nullptr;
  if (request.cpu_time_ms > 0) limits["cpu_time_ms"] = request.cpu_time_ms;
  limits["output_bytes"] = request.output_limit_bytes;
  limits["open_files"] = request.open_files;
  object["limits"] = std::move(limits);
  bool kills = request.on_output_limit == agent::OnOutputLimit::kKill;
  object["on_output_limit"] = kills ? "kill" : "cut";
  object["stdin_open"] = request.input_mode == agent::InputMode::kOpen;
  object["pty"] = nullptr;
  if (request.terminal) {
    json::object size;
    size["cols"] = request.terminal->columns;
    size["rows"] = request.terminal->rows;
    object["pty"] = std::move(size);
  }
  return json::serialize(object);
}

json::object exec_summary_json(const store::ExecRow& row) {
  json::object object;
  object["id"] = row.id.string();
  object["state"] = row.state;
  json::error_code error;
  object["request"] = json::parse(row.request, error);
  object["pid"] = nullptr;
  if (row.pid != 0) object["pid"] = row.pid;
  object["created_at"] = to_rfc3339(WallTime{std::chrono::milliseconds(row.created_at_ms)});
  bool ended = row.state == "ended";
  object["verdict"] = nullptr;
  if (ended) object["verdict"] = row.verdict;
  object["limits_hit"] = nullptr;
  if (ended) object["limits_hit"] = limits_hit_json(row);
  object["exit_code"] = nullptr;
  if (row.exit_code) object["exit_code"] = *row.exit_code;
  object["signal"] = nullptr;
  if (row.signal) object["signal"] = *row.signal;
  if (!row.failure.empty()) object["failure"] = row.failure;
  if (!ended) return object;
  object["stdout_bytes"] = row.stdout_bytes;
  object["stderr_bytes"] = row.stderr_bytes;
  object["stdout_cut"] = row.stdout_cut;
  object["stderr_cut"] = row.stderr_cut;
  object["usage"] = usage_json(row);
  object["timings"] = timings_json(row);
  return object;
}

Result<json::object> exec_json(const sandbox::Exec& exec) {
  json::object object = exec_summary_json(exec.row());
  ATOLL_TRY_VOID(add_stream(object, exec, agent::Stream::kStdout));
  ATOLL_TRY_VOID(add_stream(object, exec, agent::Stream::kStderr));
  return object;
}

}  // namespace atl::api::v1
