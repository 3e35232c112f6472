#include "linux/kernel_gaps.h"

namespace atl::linux {
namespace {

bool gaps_expected = false;

}  // namespace

void expect_kernel_gaps() { gaps_expected = true; }

bool has_kernel_gaps() { return gaps_expected; }

}  // namespace atl::linux
