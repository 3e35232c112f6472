// What a user may say about a sandbox and an exec; what is not said is the server's choice.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/volume_request.h"

namespace atl::cli {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Of each exec: the sandbox's own are the default and the most.
struct ExecLimits {
  std::optional<std::chrono::milliseconds> cpu_time;
  std::optional<uint64_t> output_bytes;
  std::optional<uint32_t> open_files;
};

struct SandboxOptions {
  std::string template_name;
  std::optional<std::string> snapshot;  // what it begins with, instead of a template
  std::string name;                     // empty: none
  // What a name that is taken means.
  enum class Conflict : unsigned char { kError, kUse };
  Conflict on_name_conflict = Conflict::kError;
  std::optional<std::string> isolation;
  std::optional<double> cpu;
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> pids;
  std::optional<uint64_t> disk_bytes;
  std::optional<uint64_t> disk_bytes_per_second;
  ExecLimits exec;
  std::optional<std::string> on_oom;  // "exec" | "sandbox"
  std::vector<std::string> require;
  std::vector<std::string> allow;  // what it may reach; empty: what the template says
  std::vector<std::string> secrets;
  std::vector<VolumeMount> volumes;
  std::optional<std::string> persistence;
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<std::chrono::milliseconds> idle_ttl;
  std::optional<std::string> on_ttl;  // "delete" | "pause"
  bool auto_resume = false;
  std::optional<std::chrono::milliseconds> files_only_after;  // of a pause
  bool files_only_under_pressure = false;
  Pairs env;
  Pairs metadata;
};

struct ExecOptions {
  std::optional<std::chrono::milliseconds> timeout;
  ExecLimits limits;
  std::optional<std::string> on_output_limit;  // "cut" | "kill"
  std::optional<std::string> user;
  std::optional<std::string> cwd;
  Pairs env;
};

}  // namespace atl::cli
