// Makes the connections of a passage in the network of the caller.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "microvm/passage_frame.h"

namespace atl::microvm {

// A socket that does not block and is being connected; of a question, one that is.
Result<Fd> dial_inside(const Destination& destination);

}  // namespace atl::microvm
