// What a snapshot has that its image has not, as records of the agent's file protocol: what
// FileOperation::kRestore makes the same files of, on the same image. They are made and read inside
// of isolates; here nobody looks into them.
//
// Files that lie beneath a mount, sockets, FIFOs and devices are not among them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox/sandboxes.h"
#include "store/snapshot_rows.h"

namespace atl::sandbox {

// Takes some of the records, in order; breaks anywhere.
using TakeRecords = std::function<Task<Result<void>>(std::string)>;
// The same two times gives the same bytes. kInvalid with reason snapshot_too_large.
Task<Result<void>> read_layer(Sandboxes& sandboxes, const store::SnapshotRow& snapshot,
                              TakeRecords take);

// Some of the records; empty at the end.
using GiveRecords = std::function<Task<Result<std::string>>()>;
Task<Result<void>> write_layer(std::shared_ptr<Sandbox> sandbox, GiveRecords give);

}  // namespace atl::sandbox
