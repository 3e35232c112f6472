// Where what was printed twice differs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sandbox/context_run.h"

namespace atl::sandbox {

inline constexpr size_t kShownDifferenceBytes = 200;

// A part of a stream of an exec.
struct OutputPart {
  const ExecOutput& output;
  agent::Stream stream;
  uint64_t begin, end;
};
OutputPart whole_stream(const Exec& exec, agent::Stream stream);
// Of a run that has ended; empty if it never ran.
OutputPart part_of_run(const ContextRun& run, agent::Stream stream);

struct OutputDifference {
  uint64_t offset = 0;                       // from the begin of the parts
  std::string recorded = {}, replayed = {};  // what is there, kShownDifferenceBytes at most
};

// Reads piece by piece: output may be larger than the memory that atolld shall use.
Result<std::optional<OutputDifference>> compare_streams(const OutputPart& recorded,
                                                        const OutputPart& replayed);
// What the interpreters said: results and errors, in their order.
Result<std::optional<OutputDifference>> compare_results(std::shared_ptr<ContextRun> recorded,
                                                        std::shared_ptr<ContextRun> replayed);

}  // namespace atl::sandbox
