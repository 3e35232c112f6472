// The system call filter of every program that the agent starts: a finished classic BPF program, a
// constant of the binary. The policy it stands for is agent/filter/policy.h.
#pragma once

#include <linux/filter.h>

#include <span>

namespace atl::agent {

std::span<const sock_filter> exec_filter();

// That of QEMU, which loads one of its own besides.
std::span<const sock_filter> machine_filter();

// That of gVisor's sentry, which stands between the programs and the jail.
std::span<const sock_filter> sentry_filter();

}  // namespace atl::agent
