#include "agent/exec_filter.h"

#include <algorithm>

#include "agent/filter/compile.h"

namespace atl::agent {
namespace {

using filter::Caller;

template <Caller kCaller>
constexpr filter::Program kProgram = filter::compile_policy(kCaller);

// Without the room that compiling needed.
template <Caller kCaller>
constexpr auto kInstructions = [] {
  static_assert(kProgram<kCaller>.fits);
  std::array<sock_filter, kProgram<kCaller>.size> instructions = {};
  std::copy_n(kProgram<kCaller>.instructions.begin(), instructions.size(), instructions.begin());
  return instructions;
}();

}  // namespace

std::span<const sock_filter> exec_filter() { return kInstructions<Caller::kProgram>; }

std::span<const sock_filter> machine_filter() { return kInstructions<Caller::kMachine>; }

std::span<const sock_filter> sentry_filter() { return kInstructions<Caller::kSentry>; }

}  // namespace atl::agent
