// What a user may say about limits; what is not said is the server's choice.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace atl::cli {

// Of each exec: the sandbox's own are the default and the most.
struct ExecLimits {
  std::optional<std::chrono::milliseconds> cpu_time;
  std::optional<uint64_t> output_bytes;
  std::optional<uint32_t> open_files;
};

struct SandboxOptions {
  std::string template_name;
  std::optional<double> cpu;
  std::optional<uint64_t> memory_bytes;
  std::optional<uint32_t> pids;
  std::optional<uint64_t> disk_bytes;
  std::optional<uint64_t> disk_bytes_per_second;
  ExecLimits exec;
  std::optional<std::string> on_oom;  // "exec" | "sandbox"
  std::vector<std::string> require;
  std::optional<std::chrono::milliseconds> ttl;
  std::optional<std::chrono::milliseconds> idle_ttl;
};

}  // namespace atl::cli
