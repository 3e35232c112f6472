#include "isolate/fake_exec.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace atl::isolate {

namespace {

agent::Exit make_exit(const FakeExec& exec, agent::Ending ending, uint8_t status,
                      agent::Cause cause) {
  agent::Exit exit{};
  exit.ending = ending;
  exit.status = status;
  exit.cause = cause;
  exit.stdout_bytes = exec.stdout_bytes.size();
  exit.stderr_bytes = exec.stderr_bytes.size();
  if (exec.interpreter) exit.speech_bytes = exec.interpreter->speech().size();
  exit.wall_us = 1000;
  exit.user_us = 2000;
  exit.system_us = 3000;
  exit.peak_memory_bytes = 4096;
  exit.read_bytes = 5000;
  exit.written_bytes = 6000;
  return exit;
}

std::string joined(const std::vector<std::string>& arguments) {
  std::string text;
  for (size_t i = 1; i < arguments.size(); ++i) text += (i > 1 ? " " : "") + arguments[i];
  return text + "\n";
}

struct NamedCause {
  std::string_view name;
  agent::Cause cause;
};
constexpr NamedCause kCauses[] = {
    {"program", agent::Cause::kProgram},    {"client", agent::Cause::kClient},
    {"wall_time", agent::Cause::kWallTime}, {"cpu_time", agent::Cause::kCpuTime},
    {"output", agent::Cause::kOutput},      {"memory", agent::Cause::kMemory},
};
// In the order of the bits of agent::LimitBit.
constexpr std::string_view kLimitNames[] = {"wall_time", "cpu_time", "output",
                                            "memory",    "pids",     "disk"};

// end CAUSE exit|signal N [LIMIT…]
FakeExec end_as_told(const std::vector<std::string>& arguments) {
  ATOLL_CHECK(arguments.size() >= 4);
  FakeExec exec{.stdout_bytes = "partial\n", .stderr_bytes = "partial\n"};
  auto named = std::find_if(std::begin(kCauses), std::end(kCauses),
                            [&](const NamedCause& it) { return it.name == arguments[1]; });
  ATOLL_CHECK(named != std::end(kCauses));
  auto ending = arguments[2] == "exit" ? agent::Ending::kExited : agent::Ending::kSignaled;
  auto status = static_cast<uint8_t>(atoi(arguments[3].c_str()));
  agent::Exit exit = make_exit(exec, ending, status, named->cause);
  for (size_t i = 0; i < std::size(kLimitNames); ++i)
    if (std::count(arguments.begin() + 4, arguments.end(), kLimitNames[i]) > 0)
      exit.limits_hit = static_cast<uint16_t>(exit.limits_hit | 1 << i);
  if (arguments.back() == "sandbox_peak") exit.peak_scope = agent::PeakScope::kSandbox;
  exec.exit = exit;
  return exec;
}

std::string limits_text(const agent::Start& start) {
  bool kills = start.on_output_limit == agent::OnOutputLimit::kKill;
  return std::to_string(start.cpu_time_ms) + " " + std::to_string(start.output_limit_bytes) + " " +
         std::to_string(start.open_files) + (kills ? " kill\n" : " cut\n");
}

// cat | stubborn | late
FakeExec read_input(const agent::Start& start) {
  using Reading = FakeExec::Reading;
  FakeExec exec;
  exec.reading = start.arguments[0] == "cat" ? Reading::kCopies : Reading::kRefuses;
  exec.stdout_bytes = start.input;
  exec.input_taken = start.input.size();
  exec.input_closed = start.input_mode == agent::InputMode::kEnds;
  if (exec.input_closed)
    exec.exit = make_exit(exec, agent::Ending::kExited, 0, agent::Cause::kProgram);
  return exec;
}

}  // namespace

char spam_byte(uint64_t offset) { return static_cast<char>('a' + (offset * 7 + offset / 26) % 26); }

FakeExec FakeExec::run(const agent::Start& start) {
  FakeExec exec;
  if (start.control == agent::ControlMode::kSpeaks) {
    exec.input_taken = start.input.size();
    exec.input_closed = false;
    exec.interpreter.emplace().tell(start.input);
    return exec;
  }
  const std::string& program = start.arguments[0];
  uint8_t status = 0;
  if (program == "echo") {
    exec.stdout_bytes = joined(start.arguments);
  } else if (program == "warn") {
    exec.stderr_bytes = joined(start.arguments);
  } else if (program == "exit" && start.arguments.size() == 2) {
    status = static_cast<uint8_t>(atoi(start.arguments[1].c_str()));
  } else if (program == "spam" && start.arguments.size() == 2) {
    auto count = static_cast<size_t>(atoi(start.arguments[1].c_str()));
    for (size_t i = 0; i < count; ++i) exec.stdout_bytes += spam_byte(i);
  } else if (program == "hang") {
    if (start.arguments.size() > 1) exec.stdout_bytes = joined(start.arguments);
    return exec;
  } else if (program == "cat" || program == "stubborn" || program == "late") {
    return read_input(start);
  } else if (program == "end") {
    return end_as_told(start.arguments);
  } else if (program == "limits") {
    exec.stdout_bytes = limits_text(start);
  } else {
    status = 127;
  }
  exec.exit = make_exit(exec, agent::Ending::kExited, status, agent::Cause::kProgram);
  return exec;
}

void FakeExec::take_input(uint64_t offset, std::string_view data) {
  ATOLL_CHECK(offset <= input_taken);
  std::string_view fresh = data.substr(std::min<size_t>(input_taken - offset, data.size()));
  input_taken += fresh.size();
  if (interpreter) {
    interpreter->tell(fresh);
  } else {
    stdout_bytes += fresh;
  }
}

void FakeExec::take_signal(uint8_t number) {
  if (interpreter && number == SIGINT) {
    interpreter->interrupt();
  } else if (interpreter && number == SIGCONT) {
    interpreter->begin();
  } else if (number == SIGCONT) {
    reading = Reading::kCopies;
  } else {
    end(agent::Ending::kSignaled, number, agent::Cause::kClient);
  }
}

void FakeExec::end(agent::Ending ending, uint8_t status, agent::Cause cause) {
  exit = make_exit(*this, ending, status, cause);
}

}  // namespace atl::isolate
