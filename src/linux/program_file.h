// A program read from its file once, and as a sealed memfd: what is executed from that can be
// neither replaced nor changed, by an upgrade on disk or by anyone.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

inline constexpr size_t kMaxProgramBytes = 64 * 1024 * 1024;

// The bytes of an ELF program.
Result<std::string> read_program(const std::string& path);

// `name` is what the memfd is called.
Result<Fd> load_program(const std::string& path, const char* name);

}  // namespace atl::linux
