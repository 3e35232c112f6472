// How an exec ended: a typed value, never a guess. Failures of the program and of the platform
// never share one. Later issues add the limits that are not enforced yet; design order is kept: the
// first that applies.
#pragma once

#include <optional>
#include <string_view>

#include "agent/protocol.h"

namespace atl::sandbox {

enum class Verdict : unsigned char {
  kSandboxGone,    // its sandbox was deleted or its agent died
  kPlatformError,  // we could not run it
  kKilled,         // a client asked for it
  kWallTime,       // its time was up
  kSignal,
  kNonzero,
  kOk,
};

std::string_view verdict_name(Verdict verdict);

Verdict verdict_of(const agent::Exit& exit);

}  // namespace atl::sandbox
