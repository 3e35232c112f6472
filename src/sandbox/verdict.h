// How an exec ended: a typed value, never a guess. Failures of the program and of the platform
// never share one. Of several that apply the first in this order is given.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "agent/protocol.h"

namespace atl::sandbox {

// kException and kInterrupted are of runs in a context: a plain program cannot end with them.
enum class Verdict : unsigned char {
  kSandboxGone,       // its sandbox was deleted or its agent died
  kPlatformError,     // we could not run it
  kKilled,            // a client asked for it
  kWallTime,          // its time was up
  kCpuTime,           // its cpu time was used up
  kOutputLimit,       // it printed too much and was not to be cut
  kOom,               // an out-of-memory kill ended it
  kForbiddenSyscall,  // the system call filter ended it
  kPidsLimit,         // it ended badly after a process could not be started
  kDiskLimit,         // it ended badly after its disk was full
  kCompileError,      // of a run: the compiler did not accept it
  kException,         // the code of a run raised
  kInterrupted,       // a client interrupted it
  kSignal,
  kNonzero,
  kOk,
};

std::string_view verdict_name(Verdict verdict);

Verdict verdict_of(const agent::Exit& exit);

// How a run ends whose compiler ended with that verdict, which is not "ok". What the compiler says
// itself is about the code; a limit or a failure of the platform keeps its name. Nothing else runs
// beside it, so that a kill for memory was one of the compiler's processes: a driver such as g++
// reports that by its exit code.
std::string_view verdict_after_compile(std::string_view compile_verdict, uint32_t limits_hit);

// Bits of agent::LimitBit: every limit that it touched, whether or not that ended it.
uint16_t limits_hit_of(const agent::Exit& exit);

// "wall_time", "cpu_time", "output", "memory", "pids", "disk".
std::vector<std::string_view> limit_names(uint32_t limit_bits);

}  // namespace atl::sandbox
