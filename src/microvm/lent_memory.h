// Memory that others begin with (agent/still_files.h): a sealed file that the keeper of what was
// laid down gives to whoever connects, and that the first who connects brings to the keeper of what
// begins with it.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

// For as long as this lives; returns only with an error.
Result<void> lend_memory(int listener, int memory);

struct Lent {
  Fd socket;  // the connection that brought it
  Fd memory;
  uint64_t bytes;
};
// An error: nobody came in time, or what was brought could be changed by somebody.
Result<Lent> await_memory(int listener);
// Until whoever brought it says that it is to begin; an error: he is gone.
Result<void> await_begin(const Lent& lent);

}  // namespace atl::microvm
