// Inlets: the sockets inside of a guest at which its programs' connections and questions arrive,
// and what hands them on through a passage. They are at the sandbox's own address, as in a jail;
// that connections to all other addresses come to `connections` is up to the guest's kernel
// (linux/caught_connections.h, gvisor/redirect.h).
#pragma once

#include <array>

#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

struct Inlets {
  Fd connections, proxy, stream_questions;  // listening
  Fd questions;                             // datagrams
};

// Where lo has the own address already.
Result<Inlets> make_inlets();

// Until the other end of `port` is gone. The port does not block.
[[noreturn]] void serve_inlets(Fd port, Inlets inlets);

}  // namespace atl::microvm
