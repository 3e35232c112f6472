#include "sandbox/run_reader.h"

#include <algorithm>

namespace atl::sandbox {

namespace {

constexpr size_t kPieceBytes = 64 * 1024;
constexpr size_t kMarksAtOnce = 1024;

std::optional<RunEvent> parse_record(const std::string& text, uint32_t run) {
  auto fields = speech_fields(text);
  if (!fields) return std::nullopt;
  if (auto result = parse_result(*fields, run)) return RunEvent(std::move(*result));
  if (auto error = parse_error(*fields, run)) return RunEvent(std::move(*error));
  return std::nullopt;
}

}  // namespace

RunReader::Ends RunReader::ends() const {
  const store::RunRow& row = run_->row();
  if (row.state == "ended")
    return {row.stdout_end - row.stdout_begin, row.stderr_end - row.stderr_begin,
            row.speech_end - row.speech_begin};
  if (row.state == "queued" || !run_->exec()) return {0, 0, 0};
  const ExecOutput& output = run_->exec()->output();
  return {output.end(agent::Stream::kStdout) - row.stdout_begin,
          output.end(agent::Stream::kStderr) - row.stderr_begin,
          output.end(agent::Stream::kSpeech) - row.speech_begin};
}

Result<bool> RunReader::find_record(const Ends& ends) {
  if (record_) return true;
  const store::RunRow& row = run_->row();
  if (!lines_) lines_.emplace(at_.speech, kMaxSpeechLineBytes);
  while (lines_->next() < ends.speech) {
    uint64_t from = lines_->next();
    size_t most = std::min<uint64_t>(kPieceBytes, ends.speech - from);
    ATOLL_TRY(std::string piece,
              run_->exec()->output().speech().read(row.speech_begin + from, most));
    if (piece.empty()) return Error(Code::kCorrupt, "a log is shorter than it was");
    std::string_view rest = piece;
    auto line = lines_->take(rest);
    // What is behind the line is read again.
    if (!line) continue;
    std::optional<RunEvent> record;
    if (line->is_whole) record = parse_record(line->text, row.number);
    if (!record) continue;
    record_ = std::move(record);
    record_start_ = line->start;
    record_end_ = line->end;
    return true;
  }
  return false;
}

Result<void> RunReader::find_place(Ends& until) {
  const store::RunRow& row = run_->row();
  const SpeechLog& speech = run_->exec()->output().speech();
  while (true) {
    ATOLL_TRY(auto marks, speech.read_marks(row.marks_begin + marks_read_, kMarksAtOnce));
    size_t used = 0;
    while (used < marks.size() && marks[used].speech <= row.speech_begin + record_start_)
      mark_ = marks[used++];
    marks_read_ += used;
    if (used < kMarksAtOnce) break;
  }
  uint64_t printed = mark_ ? mark_->standard_output : row.stdout_begin;
  uint64_t warned = mark_ ? mark_->standard_error : row.stderr_begin;
  // A mark of before the run says less than its beginning.
  until.standard_output =
      std::min(until.standard_output, std::max(printed, row.stdout_begin) - row.stdout_begin);
  until.standard_error =
      std::min(until.standard_error, std::max(warned, row.stderr_begin) - row.stderr_begin);
  return {};
}

Result<std::optional<RunOutput>> RunReader::output(agent::Stream stream, uint64_t until,
                                                   size_t most) {
  bool is_error = stream == agent::Stream::kStderr;
  uint64_t& at = is_error ? at_.standard_error : at_.standard_output;
  if (at >= until) return std::optional<RunOutput>();
  uint64_t begin = is_error ? run_->row().stderr_begin : run_->row().stdout_begin;
  size_t wanted = std::min<uint64_t>(most, until - at);
  ATOLL_TRY(std::string bytes, run_->exec()->output().read(stream, begin + at, wanted));
  if (bytes.empty()) return Error(Code::kCorrupt, "a log is shorter than it was");
  at += bytes.size();
  return std::optional(RunOutput{stream, std::move(bytes)});
}

Result<RunEvent> RunReader::next(size_t most) {
  bool is_over = run_->ended();
  Ends until = ends();
  if (!run_->exec()) return is_over ? RunEvent(RunOver{}) : RunEvent(RunPending{});
  ATOLL_TRY(bool has_record, find_record(until));
  if (has_record) ATOLL_TRY_VOID(find_place(until));
  for (agent::Stream stream : {agent::Stream::kStdout, agent::Stream::kStderr}) {
    bool is_error = stream == agent::Stream::kStderr;
    uint64_t end = is_error ? until.standard_error : until.standard_output;
    ATOLL_TRY(auto piece, output(stream, end, most));
    if (piece) return RunEvent(std::move(*piece));
  }
  if (has_record) {
    at_.speech = record_end_;
    RunEvent event = std::move(*record_);
    record_.reset();
    return event;
  }
  return is_over ? RunEvent(RunOver{}) : RunEvent(RunPending{});
}

void RunReader::unread(const RunOutput& output, size_t bytes) {
  bool is_error = output.stream == agent::Stream::kStderr;
  (is_error ? at_.standard_error : at_.standard_output) -= bytes;
}

}  // namespace atl::sandbox
