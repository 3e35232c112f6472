// Replay: what was run in a sandbox since a snapshot is run again, in a fresh sandbox that begins
// with it, and compared: how each ended, what it printed, and at the end all files. The first
// difference ends it.
//
// Every exec is recorded with all that its program was started with, and every run of a context
// with its code. What a person or another program did meanwhile (input that was streamed, signals,
// files that were uploaded, restarts) is not, and is named where it is known.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/diff.h"
#include "sandbox/snapshots.h"

namespace atl::sandbox {

inline constexpr size_t kMaxReplayedRuns = 1000;
inline constexpr uint64_t kReplayTtlMs = 3600ull * 1000;

// An exec, or a run of a context.
struct RecordedRun {
  std::optional<ExecId> exec = {};
  std::optional<ContextId> context = {};
  uint32_t number = 0;  // of the run

  // "e3", "cabcdefghijk/2".
  static std::optional<RecordedRun> parse(std::string_view text);
  std::string string() const;
  bool operator==(const RecordedRun&) const = default;
};

struct ReplayRequest {
  SnapshotId from;
  // Nothing: all since the snapshot, and then the files are compared too.
  std::optional<std::vector<RecordedRun>> runs = {};
};

struct ReplayedRun {
  RecordedRun run;
  std::string verdict;
  std::optional<int> exit_code = {};
};

struct NotReplayed {
  RecordedRun run;
  std::string_view why;
};

struct ReplayDifference {
  std::optional<RecordedRun> run = {};  // nothing: in the files at the end
  std::string_view in;                  // "verdict", "exit_code", "stdout", "result", "files", …
  uint64_t offset = 0;                  // of a stream
  std::string recorded = {}, replayed = {};  // what is there, of a stream some bytes
  std::optional<DiffChange> change = {};     // from what was recorded to what was replayed
};

struct Replayed {
  std::vector<ReplayedRun> runs = {};
  std::vector<NotReplayed> not_replayed = {};
  std::optional<ReplayDifference> difference = {};
  bool files_compared = false;
};

// All from that number of the sequence on, in its order; of the contexts that are there.
Task<Result<std::vector<RecordedRun>>> runs_since(Ledger& ledger, std::shared_ptr<Sandbox> sandbox,
                                                  int64_t first);

// kNotFound with reason snapshot_not_found, exec_not_found or run_not_found.
Task<Result<Replayed>> replay_runs(Sandboxes& sandboxes, Snapshots& snapshots,
                                   std::shared_ptr<Sandbox> sandbox, ReplayRequest request);

}  // namespace atl::sandbox
