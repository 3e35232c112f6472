#include "sandbox/exec.h"

#include <algorithm>
#include <limits>

namespace atl::sandbox {

constexpr uint64_t kMaxFigure = std::numeric_limits<int64_t>::max();  // a column's

Exec::Exec(boost::asio::any_io_executor executor, store::ExecRow row, ExecOutput output,
           uint64_t output_limit_bytes)
    : row_(std::move(row)),
      output_(std::move(output)),
      output_limit_bytes_(output_limit_bytes),
      changed_(std::move(executor)) {}

agent::ExecOffsets Exec::offsets() const {
  return {row_.id.number(), output_.taken(agent::Stream::kStdout),
          output_.taken(agent::Stream::kStderr), output_.taken(agent::Stream::kSpeech)};
}

Task<bool> Exec::wait_changed(std::chrono::steady_clock::time_point deadline) {
  return changed_.wait_until(deadline);
}

Task<bool> Exec::wait_ended(std::chrono::steady_clock::time_point deadline) {
  while (!ended()) {
    bool notified = co_await changed_.wait_until(deadline);
    if (!notified) co_return ended();
  }
  co_return true;
}

void Exec::set_started(uint32_t pid) {
  row_.pid = pid;
  notify();
}

Result<uint64_t> Exec::append(const agent::Output& output) {
  uint64_t held = output_.taken(output.stream);
  if (output.offset != held) return Error(Code::kCorrupt, "output at a wrong offset");
  // An interpreter's limits move with its runs, and what it says has none here: whoever listens
  // ends one that says too much.
  bool is_limited = output_.kind() == ExecKind::kProgram;
  if (is_limited && output.stream == agent::Stream::kSpeech)
    return Error(Code::kCorrupt, "speech of a program that has none");
  if (is_limited && output.data.size() > output_limit_bytes_ - std::min(output_limit_bytes_, held))
    return Error(Code::kCorrupt, "output beyond its limit");
  ATOLL_TRY(uint64_t end, output_.append(output.stream, output.data));
  notify();
  return end;
}

Result<void> Exec::set_taken(const agent::InputTaken& taken) {
  if (taken.offset > kMaxFigure) return Error(Code::kCorrupt, "input at an impossible offset");
  // The first input counts as taken from the start, because it is part of the start frame.
  input_.taken = std::max(input_.taken, taken.offset);
  input_.closed = taken.closed;
  input_.known = true;
  notify();
  return {};
}

Result<void> Exec::check_exit(const agent::Exit& exit) const {
  agent::ExecOffsets held = offsets();
  if (exit.stdout_bytes != held.stdout_offset || exit.stderr_bytes != held.stderr_offset ||
      exit.speech_bytes != held.speech_offset)
    return Error(Code::kCorrupt, "exit before all of its output");
  // A figure that no row can hold would make the verdict impossible to store for ever.
  for (uint64_t figure :
       {exit.stdout_cut, exit.stderr_cut, exit.start_us, exit.wall_us, exit.drain_us, exit.user_us,
        exit.system_us, exit.peak_memory_bytes, exit.read_bytes, exit.written_bytes})
    if (figure > kMaxFigure) return Error(Code::kCorrupt, "exit with an impossible figure");
  return {};
}

void Exec::set_ended(store::ExecRow row) {
  row_ = std::move(row);
  notify();
}

agent::ExecOffsets kept_offsets(const Exec& exec) {
  const ExecOutput& output = exec.output();
  return {exec.id().number(), output.end(agent::Stream::kStdout),
          output.end(agent::Stream::kStderr), output.end(agent::Stream::kSpeech)};
}

store::ExecRow ended_row(const Exec& exec, agent::Exit exit) {
  const ExecOutput& output = exec.output();
  exit.stdout_bytes -= output.dropped(agent::Stream::kStdout);
  exit.stdout_cut += output.dropped(agent::Stream::kStdout);
  exit.stderr_bytes -= output.dropped(agent::Stream::kStderr);
  exit.stderr_cut += output.dropped(agent::Stream::kStderr);
  store::ExecRow row = exec.row();
  row.state = "ended";
  row.verdict = verdict_name(verdict_of(exit));
  if (exit.ending == agent::Ending::kExited) {
    row.exit_code = exit.status;
  } else {
    row.signal = exit.status;
  }
  row.stdout_bytes = exit.stdout_bytes;
  row.stderr_bytes = exit.stderr_bytes;
  row.stdout_cut = exit.stdout_cut;
  row.stderr_cut = exit.stderr_cut;
  row.start_us = exit.start_us;
  row.wall_us = exit.wall_us;
  row.drain_us = exit.drain_us;
  row.user_us = exit.user_us;
  row.system_us = exit.system_us;
  row.peak_memory_bytes = exit.peak_memory_bytes;
  row.read_bytes = exit.read_bytes;
  row.written_bytes = exit.written_bytes;
  row.peak_memory_scope = exit.peak_scope == agent::PeakScope::kSandbox ? "sandbox" : "exec";
  row.limits_hit = limits_hit_of(exit);
  return row;
}

store::ExecRow ended_row(store::ExecRow row, Verdict verdict, std::string failure,
                         const agent::ExecOffsets& offsets) {
  row.state = "ended";
  row.verdict = verdict_name(verdict);
  row.failure = std::move(failure);
  row.stdout_bytes = offsets.stdout_offset;
  row.stderr_bytes = offsets.stderr_offset;
  return row;
}

}  // namespace atl::sandbox
