// How this program ends: as the program that ran in the sandbox ended, or with a code that
// such a program rarely uses, in the manner of env(1) and timeout(1).
#pragma once

#include <optional>
#include <string_view>

namespace atl::cli {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotRunning = 3;
inline constexpr int kExitCompileError = 65;  // EX_DATAERR of sysexits.h
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitPlatform = 125;

struct ProgramEnd {
  std::string_view verdict;
  std::optional<int> exit_code;
  std::optional<int> signal_number;
};

// The program's exit code, 128 + its signal, kExitCompileError when there is no program because
// its code does not compile, kExitTimeout when its time was up, or kExitPlatform when it was not
// the program that failed.
int exit_code_of(const ProgramEnd& end);

}  // namespace atl::cli
