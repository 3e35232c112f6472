#include "cli/program_output.h"

#include <stdio.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "cli/base64.h"
#include "cli/exit_code.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;
using std::chrono::steady_clock;

// For a server that is being restarted.
constexpr std::chrono::milliseconds kPatience{30'000};
constexpr std::chrono::milliseconds kRetryPause{200};
// Streams say something every 15 s.
constexpr std::chrono::milliseconds kSilence{60'000};
constexpr std::chrono::milliseconds kWaitStep{20'000};

Result<json::object> parse_data(const std::string& data) {
  json::error_code error;
  json::value value = json::parse(data, error);
  if (error || !value.is_object()) return Error(Code::kCorrupt, "an event is not a JSON object");
  return std::move(value.as_object());
}

bool may_come_back(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kTimeout;
}

class Follower {
 public:
  Follower(Api& api, const ExecName& name, OutputMode mode, StdoutTarget target)
      : api_(api),
        name_(name),
        out_(target == StdoutTarget::kStdout ? STDOUT_FILENO : STDERR_FILENO, mode),
        err_(STDERR_FILENO, mode) {}

  Result<json::object> follow() {
    steady_clock::time_point given_up = steady_clock::now() + kPatience;
    for (;;) {
      std::string before = last_id_;
      Result<void> read = read_events();
      if (!failed_.ok()) return std::move(failed_).error();
      if (ended_) return finish();
      if (!read && !may_come_back(read.error())) return std::move(read).error();
      auto now = steady_clock::now();
      if (last_id_ != before) given_up = now + kPatience;
      if (now > given_up) return read ? lost() : std::move(read).error();
      std::this_thread::sleep_for(kRetryPause);
    }
  }

 private:
  static Error lost() { return Error(Code::kUnavailable, "the server ends the stream too early"); }

  Result<void> read_events() {
    ATOLL_TRY(std::string target, exec_target(name_.sandbox, name_.exec));
    Api::Call call{.target = target + "/output", .timeout = kSilence};
    if (!last_id_.empty()) call.headers.add("Last-Event-ID", last_id_);
    return api_.events(call, [this](const http::ReceivedEvent& event) {
      failed_ = take(event);
      return failed_.ok() && !ended_;
    });
  }

  Result<void> take(const http::ReceivedEvent& event) {
    if (event.name == "exit") {
      ATOLL_TRY(ended_, parse_data(event.data));
      return {};
    }
    if (event.name != "stdout" && event.name != "stderr") return {};
    ATOLL_TRY(json::object data, parse_data(event.data));
    std::string bytes = text_field(data, "text");
    if (data.contains("base64")) {
      ATOLL_TRY(bytes, decode_base64(text_field(data, "base64")));
    }
    ATOLL_TRY_VOID((event.name == "stdout" ? out_ : err_).write(bytes));
    // Only now: what was not written is asked for again.
    last_id_ = event.id;
    return {};
  }

  Result<json::object> finish() {
    ATOLL_TRY_VOID(out_.finish());
    ATOLL_TRY_VOID(err_.finish());
    return std::move(*ended_);
  }

  Api& api_;
  const ExecName& name_;
  OutputWriter out_;
  OutputWriter err_;
  std::string last_id_;
  Result<void> failed_;
  std::optional<json::object> ended_;
};

std::optional<int> small_number(const json::object& exec, const char* name) {
  const json::value* value = exec.if_contains(name);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  int64_t number = value->as_int64();
  if (number < 0 || number > 255) return std::nullopt;
  return static_cast<int>(number);
}

struct Advice {
  std::string_view verdict;
  const char* text;
};
constexpr std::array kAdvice = {
    Advice{"wall_time", "raise --timeout"},
    Advice{"cpu_time", "raise --cpu-time"},
    Advice{"output_limit", "raise --output-limit, or print less"},
    Advice{"oom", "raise --memory"},
    Advice{"pids_limit", "raise --pids"},
    Advice{"disk_limit", "raise --disk"},
    Advice{"compile_error", "the compiler did not accept it"},
    Advice{"forbidden_syscall", "it used a system call that no sandbox allows"},
    Advice{"killed", "a client asked for it"},
    Advice{"sandbox_gone", "its sandbox was deleted or failed: atoll show says more"},
    Advice{"platform_error", "Atoll could not run it"},
};

std::string wall_time(const json::object& exec) {
  const json::value* usage = exec.if_contains("usage");
  const json::value* wall =
      usage != nullptr && usage->is_object() ? usage->get_object().if_contains("wall_ms") : nullptr;
  if (wall == nullptr || !wall->is_number()) return "";
  return fmt::format(" after {:.1f} s", wall->to_number<double>() / 1000);
}

}  // namespace

Result<json::object> follow_exec(Api& api, const ExecName& name, OutputMode mode,
                                 StdoutTarget target) {
  return Follower(api, name, mode, target).follow();
}

Result<json::object> wait_for_exec(Api& api, const ExecName& name) {
  ATOLL_TRY(std::string target, exec_target(name.sandbox, name.exec));
  target += "?wait_ms=" + std::to_string(kWaitStep.count());
  for (;;) {
    ATOLL_TRY(json::object exec, api.call({.target = target}));
    if (text_field(exec, "state") == "ended") return exec;
  }
}

Result<void> write_stream(Api& api, const ExecName& name, const std::string& stream,
                          OutputWriter& output) {
  ATOLL_TRY(std::string target, exec_target(name.sandbox, name.exec));
  Result<void> written;
  auto on_bytes = [&](std::string_view bytes) { return (written = output.write(bytes)).ok(); };
  ATOLL_TRY_VOID(api.stream({.target = target + "/output?stream=" + stream}, on_bytes));
  ATOLL_TRY_VOID(std::move(written));
  return output.finish();
}

Result<void> signal_exec(Api& api, const ExecName& name, int number) {
  ATOLL_TRY(std::string target, exec_target(name.sandbox, name.exec));
  ATOLL_TRY_VOID(api.call(
      {.method = http::Method::kPost, .target = target + "/signal", .body = {{"signal", number}}}));
  return {};
}

int exit_code_of_exec(const json::object& exec) {
  return exit_code_of({.verdict = text_field(exec, "verdict"),
                       .exit_code = small_number(exec, "exit_code"),
                       .signal_number = small_number(exec, "signal")});
}

std::string explain_end(const json::object& exec) {
  std::string verdict = text_field(exec, "verdict");
  std::string text;
  if (verdict == "signal")
    text = "atoll: signal " + readable_field(exec, "signal") + wall_time(exec) + "\n";
  for (const Advice& advice : kAdvice) {
    if (advice.verdict != verdict) continue;
    std::string failure = text_field(exec, "failure");
    bool compiling = text_field(exec, "phase") == "compile" && verdict != "compile_error";
    text = (compiling ? "atoll: compiling: " : "atoll: ") + verdict + wall_time(exec) + ": " +
           advice.text + (failure.empty() ? "" : ": " + escape_line(failure)) + "\n";
  }
  for (const char* stream : {"stdout", "stderr"}) {
    uint64_t cut = number_field(exec, std::string(stream) + "_cut");
    if (cut > 0)
      text += fmt::format("atoll: {} bytes of {} were cut: raise --output-limit\n", cut, stream);
  }
  return text;
}

int report_end(const json::object& exec, Verbosity verbosity) {
  fputs(explain_end(exec).c_str(), stderr);
  if (verbosity == Verbosity::kVerbose)
    for (const char* name : {"verdict", "limits_hit", "usage", "timings"})
      fprintf(stderr, "%s %s\n", name, readable_field(exec, name).c_str());
  return exit_code_of_exec(exec);
}

}  // namespace atl::cli
