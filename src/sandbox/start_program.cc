#include "sandbox/start_program.h"

#include <algorithm>

#include "base/utf8.h"

namespace atl::sandbox {
namespace {

constexpr std::chrono::milliseconds kLookAgain{20};
constexpr size_t kShownBytes = 500;  // of what it said last

// Asks in the sandbox itself, as often as a program can be started there.
constexpr const char* kAskAgain =
    "until (eval \"$1\") >/dev/null 2>&1 </dev/null; do sleep 0.05 || sleep 1; done";

ExecRequest as_usual(const Sandbox& sandbox, std::vector<std::string> arguments) {
  const store::SandboxRow& row = sandbox.row();
  ExecRequest request{.arguments = std::move(arguments), .environment = {}};
  request.user = row.user;
  request.directory = row.directory;
  request.output_limit_bytes = row.output_bytes;
  return request;
}

Task<Result<std::shared_ptr<Exec>>> begin(Services& services, std::shared_ptr<Sandbox> sandbox,
                                          ExecRequest request) {
  std::string description = services.describe ? services.describe(request) : "{}";
  auto begun = co_await sandbox->start_exec(std::move(request), std::move(description));
  co_return begun;
}

std::string last_words(Exec& program) {
  for (agent::Stream stream : {agent::Stream::kStderr, agent::Stream::kStdout}) {
    uint64_t bytes = program.output().end(stream);
    uint64_t from = bytes - std::min<uint64_t>(bytes, kShownBytes);
    auto text = program.output().read(stream, from, kShownBytes);
    if (text && !text->empty()) return ": " + readable_utf8(*text);
  }
  return "";
}

Error failed(const store::StartProgram& wanted, const std::string& why) {
  return Error(Code::kInvalid, "what the template starts (" + wanted.command + ") " + why)
      .with_reason("start_failed")
      .with_field("template");
}

}  // namespace

Task<Result<void>> start_program(Services& services, std::shared_ptr<Sandbox> sandbox,
                                 store::StartProgram wanted) {
  std::vector<std::string> command = {"/bin/sh", "-c", wanted.command};
  ExecRequest request = as_usual(*sandbox, std::move(command));
  ATOLL_CO_TRY(auto program, co_await begin(services, sandbox, std::move(request)));
  if (wanted.ready.empty()) co_return Result<void>();
  std::vector<std::string> question = {"/bin/sh", "-c", kAskAgain, "ready", wanted.ready};
  ExecRequest asked = as_usual(*sandbox, std::move(question));
  asked.timeout_ms = static_cast<uint32_t>(wanted.ready_timeout_ms);
  ATOLL_CO_TRY(auto ready, co_await begin(services, sandbox, std::move(asked)));
  while (!ready->ended()) {
    if (program->ended() && program->row().verdict != "ok") break;
    auto soon = std::chrono::steady_clock::now() + kLookAgain;
    (void)co_await ready->wait_ended(soon);
    if (sandbox->state() != State::kRunning) co_return failed(wanted, "lost its sandbox");
  }
  if (ready->ended() && ready->row().verdict == "ok") co_return Result<void>();
  bool is_over = program->ended() && program->row().verdict != "ok";
  std::string why = is_over ? "ended (" + program->row().verdict + ")" : "was not ready in time";
  co_return failed(wanted, why + last_words(*program));
}

}  // namespace atl::sandbox
