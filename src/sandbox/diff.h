// Diff: what is different in the files of two snapshots, or of a snapshot and a live sandbox.
//
// Each side is read by the agent in an isolate of its own that begins with the snapshot; of a live
// sandbox one is cut for that. The two lists come in the order of their paths and are compared as
// they come. A file is the same if nothing about it changed since both sides had it in common,
// which its time of change tells; else if its bytes are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/files.h"
#include "sandbox/snapshots.h"

namespace atl::sandbox {

inline constexpr size_t kMaxDiffChanges = 10'000;

struct DiffChange {
  enum class What : unsigned char { kAdded, kChanged, kRemoved };
  What what;
  std::string path;
  agent::EntryType type;  // as it is now, or was
  std::optional<uint64_t> size_before, size;
};

struct DiffRequest {
  SnapshotId from;
  std::optional<SnapshotId> to = {};     // nothing: the sandbox as it is now
  std::shared_ptr<Sandbox> live = {};    // if `to` is nothing
  std::string path = "/";                // only beneath it
  size_t limit = 1000;                   // of changes
  std::optional<std::string> text = {};  // a file whose lines are compared instead
};

struct Diff {
  std::vector<DiffChange> changes = {};
  bool truncated = false;  // there are more
  std::string text = {};   // of the one file that was asked for
};

// kConflict with reason not_text: the file has no lines, or too many bytes for it.
Task<Result<Diff>> make_diff(Sandboxes& sandboxes, Snapshots& snapshots, store::TenantId tenant,
                             DiffRequest request);

}  // namespace atl::sandbox
