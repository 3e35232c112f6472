// The Landlock rules of every program: a second wall behind the mounts' nodev and the missing
// capabilities. A program may do with files what their permissions say, but make no device node,
// and use ioctl on devices beneath /dev only.
//
// No rules for the network and no scopes: the execs of one sandbox signal each other and share
// abstract sockets, as programs of one user do; the process and network namespaces confine both to
// the sandbox.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

enum class Landlock : unsigned char { kWhereThereIs, kRequired };

// Not valid where the kernel has no Landlock. Made once, in the final root and before any program
// runs; each program takes the same set, which costs one system call.
Result<Fd> make_exec_file_rules(Landlock landlock);

}  // namespace atl::agent
