#include "agent/exec_filter.h"

#include <algorithm>

#include "agent/filter/compile.h"

namespace atl::agent {
namespace {

constexpr filter::Program kProgram = filter::compile_policy();
static_assert(kProgram.fits);

// Without the room that compiling needed.
constexpr auto kInstructions = [] {
  std::array<sock_filter, kProgram.size> instructions = {};
  std::copy_n(kProgram.instructions.begin(), kProgram.size, instructions.begin());
  return instructions;
}();

}  // namespace

std::span<const sock_filter> exec_filter() { return kInstructions; }

}  // namespace atl::agent
