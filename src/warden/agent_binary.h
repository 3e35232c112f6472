// The agent's program as a sealed memfd: what isolates execute can be neither replaced nor changed,
// by an upgrade on disk or by anyone, as long as this warden runs.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::warden {

inline constexpr size_t kMaxAgentBytes = 64 * 1024 * 1024;

// The bytes of an ELF program.
Result<std::string> read_program(const std::string& path);

Result<Fd> load_agent_binary(const std::string& path);

}  // namespace atl::warden
