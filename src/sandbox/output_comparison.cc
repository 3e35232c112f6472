#include "sandbox/output_comparison.h"

#include <algorithm>

#include "sandbox/run_reader.h"

namespace atl::sandbox {

namespace {

constexpr size_t kPieceBytes = 64 * 1024;

// The next thing that was said, as text; nothing at the end.
Result<std::optional<std::string>> next_word(RunReader& reader) {
  while (true) {
    ATOLL_TRY(RunEvent event, reader.next(kPieceBytes));
    if (auto* result = std::get_if<RunResult>(&event)) {
      std::string text;
      for (const auto& [type, data] : result->data) text += type + ": " + data + "\n";
      return std::optional(std::move(text));
    }
    // The traceback has places in memory and numbers of runs in it.
    if (auto* error = std::get_if<RunError>(&event))
      return std::optional(error->name + ": " + error->value);
    bool is_output = std::holds_alternative<RunOutput>(event);
    if (!is_output) return std::optional<std::string>();
  }
}

std::string shown(const std::optional<std::string>& word) {
  return word ? word->substr(0, kShownDifferenceBytes) : "";
}

}  // namespace

OutputPart whole_stream(const Exec& exec, agent::Stream stream) {
  return {exec.output(), stream, 0, exec.output().end(stream)};
}

OutputPart part_of_run(const ContextRun& run, agent::Stream stream) {
  const store::RunRow& row = run.row();
  bool out = stream == agent::Stream::kStdout;
  return {run.exec()->output(), stream, out ? row.stdout_begin : row.stderr_begin,
          out ? row.stdout_end : row.stderr_end};
}

Result<std::optional<OutputDifference>> compare_streams(const OutputPart& recorded,
                                                        const OutputPart& replayed) {
  uint64_t lengths[] = {recorded.end - recorded.begin, replayed.end - replayed.begin};
  uint64_t at = 0;
  while (true) {
    uint64_t left = std::min(lengths[0], lengths[1]) - at;
    size_t most = std::min<uint64_t>(left, kPieceBytes);
    ATOLL_TRY(auto was, recorded.output.read(recorded.stream, recorded.begin + at, most));
    ATOLL_TRY(auto is, replayed.output.read(replayed.stream, replayed.begin + at, most));
    auto [one, other] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    size_t same = static_cast<size_t>(one - was.begin());
    at += same;
    if (one != was.end() || other != is.end() || most == left || same == 0) break;
  }
  if (at == lengths[0] && at == lengths[1]) return std::optional<OutputDifference>();
  OutputDifference found{.offset = at};
  size_t room = kShownDifferenceBytes;
  ATOLL_TRY(found.recorded, recorded.output.read(recorded.stream, recorded.begin + at,
                                                 std::min<uint64_t>(room, lengths[0] - at)));
  ATOLL_TRY(found.replayed, replayed.output.read(replayed.stream, replayed.begin + at,
                                                 std::min<uint64_t>(room, lengths[1] - at)));
  return std::optional(std::move(found));
}

Result<std::optional<OutputDifference>> compare_results(std::shared_ptr<ContextRun> recorded,
                                                        std::shared_ptr<ContextRun> replayed) {
  RunReader first(recorded, {}), second(replayed, {});
  while (true) {
    ATOLL_TRY(auto was, next_word(first));
    ATOLL_TRY(auto is, next_word(second));
    if (was != is) return std::optional(OutputDifference{0, shown(was), shown(is)});
    if (!was) return std::optional<OutputDifference>();
  }
}

}  // namespace atl::sandbox
