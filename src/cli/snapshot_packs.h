// Snapshots that leave this host or come to it: `atoll snapshot seal|export|import`.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "cli/api.h"
#include "cli/command_line.h"

namespace atl::cli {

// To pack or to unpack one, during which nothing is heard.
inline constexpr std::chrono::hours kMostSealTime{1};

Result<int> run_pack_command(const CommandLine& line, Api& api, const SnapshotCommand& command);

// The path of a snapshot: nothing else may stand in a path.
Result<std::string> snapshot_target(const std::string& id);

}  // namespace atl::cli
