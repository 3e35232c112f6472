#include "sandbox/verdict.h"

#include <signal.h>

namespace atl::sandbox {

namespace {

using agent::Cause;
using agent::LimitBit;

struct NamedLimit {
  LimitBit limit;
  std::string_view name;
};
constexpr NamedLimit kLimits[] = {
    {LimitBit::kWallTime, "wall_time"}, {LimitBit::kCpuTime, "cpu_time"},
    {LimitBit::kOutput, "output"},      {LimitBit::kMemory, "memory"},
    {LimitBit::kPids, "pids"},          {LimitBit::kDisk, "disk"},
};

}  // namespace

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
    case Verdict::kCpuTime:
      return "cpu_time";
    case Verdict::kOutputLimit:
      return "output_limit";
    case Verdict::kOom:
      return "oom";
    case Verdict::kForbiddenSyscall:
      return "forbidden_syscall";
    case Verdict::kPidsLimit:
      return "pids_limit";
    case Verdict::kDiskLimit:
      return "disk_limit";
    case Verdict::kCompileError:
      return "compile_error";
    case Verdict::kException:
      return "exception";
    case Verdict::kInterrupted:
      return "interrupted";
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
  if (exit.cause == Cause::kUnbegun) return Verdict::kPlatformError;
  if (exit.cause == Cause::kClient) return Verdict::kKilled;
  if (exit.cause == Cause::kWallTime) return Verdict::kWallTime;
  if (exit.cause == Cause::kCpuTime) return Verdict::kCpuTime;
  if (exit.cause == Cause::kOutput) return Verdict::kOutputLimit;
  if (exit.cause == Cause::kMemory) return Verdict::kOom;
  bool signaled = exit.ending == agent::Ending::kSignaled;
  if (signaled && exit.status == SIGSYS) return Verdict::kForbiddenSyscall;
  if (!signaled && exit.status == 0) return Verdict::kOk;
  // A program that touched these and got along with it has ended as it says.
  if (exit.limits_hit & bit(LimitBit::kPids)) return Verdict::kPidsLimit;
  if (exit.limits_hit & bit(LimitBit::kDisk)) return Verdict::kDiskLimit;
  return signaled ? Verdict::kSignal : Verdict::kNonzero;
}

std::string_view verdict_after_compile(std::string_view compile_verdict, uint32_t limits_hit) {
  bool is_own = compile_verdict == verdict_name(Verdict::kNonzero) ||
                compile_verdict == verdict_name(Verdict::kSignal);
  if (!is_own) return compile_verdict;
  bool killed = limits_hit & bit(LimitBit::kMemory);
  return verdict_name(killed ? Verdict::kOom : Verdict::kCompileError);
}

uint16_t limits_hit_of(const agent::Exit& exit) {
  bool cut = exit.stdout_cut > 0 || exit.stderr_cut > 0;
  int hit = exit.limits_hit | agent::limit_bit_of(exit.cause) | (cut ? bit(LimitBit::kOutput) : 0);
  return static_cast<uint16_t>(hit);
}

std::vector<std::string_view> limit_names(uint32_t limit_bits) {
  std::vector<std::string_view> names;
  for (const NamedLimit& named : kLimits)
    if (limit_bits & bit(named.limit)) names.push_back(named.name);
  return names;
}

}  // namespace atl::sandbox
