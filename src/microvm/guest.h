// The first process of a guest: finds its disks, builds the sandbox's root from them, starts the
// agent there as process 1 of namespaces of its own, and passes its stream on to the keeper. When
// either ends, so does the machine.
#pragma once

namespace atl::microvm {

// How the kernel calls it.
inline constexpr const char* kGuestProgram = "/init";

[[noreturn]] void run_guest();

}  // namespace atl::microvm
