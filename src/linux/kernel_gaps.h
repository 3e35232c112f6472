// Whether this process runs on a kernel that lacks calls which every host has: gVisor's, where all
// that could be reached by doing without them is the sandbox's own. Everywhere else a call that is
// missing is an error: what takes it away must not weaken what stands on it.
#pragma once

namespace atl::linux {

// From now on, also in children. Said once, before there is a second thread.
void expect_kernel_gaps();
bool has_kernel_gaps();

}  // namespace atl::linux
