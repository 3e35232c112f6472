#include "cli/exit_code.h"

namespace atl::cli {

int exit_code_of(const ProgramEnd& end) {
  if (end.verdict == "sandbox_gone" || end.verdict == "platform_error") return kExitPlatform;
  if (end.verdict == "compile_error") return kExitCompileError;
  if (end.verdict == "wall_time" || end.verdict == "cpu_time") return kExitTimeout;
  if (end.signal_number && *end.signal_number > 0 && *end.signal_number < 128)
    return 128 + *end.signal_number;
  if (end.exit_code && *end.exit_code >= 0 && *end.exit_code <= 255) return *end.exit_code;
  return kExitPlatform;
}

}  // namespace atl::cli
