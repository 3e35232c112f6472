#include "sandbox/verdict.h"

namespace atl::sandbox {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSandboxGone:
      return "sandbox_gone";
    case Verdict::kPlatformError:
      return "platform_error";
    case Verdict::kKilled:
      return "killed";
    case Verdict::kWallTime:
      return "wall_time";
    case Verdict::kSignal:
      return "signal";
    case Verdict::kNonzero:
      return "nonzero";
    case Verdict::kOk:
      return "ok";
  }
  return "platform_error";
}

Verdict verdict_of(const agent::Exit& exit) {
  if (exit.cause == agent::Cause::kClient) return Verdict::kKilled;
  if (exit.cause == agent::Cause::kWallTime) return Verdict::kWallTime;
  if (exit.ending == agent::Ending::kSignaled) return Verdict::kSignal;
  return exit.status == 0 ? Verdict::kOk : Verdict::kNonzero;
}

}  // namespace atl::sandbox
