// Pipes through which bytes are moved from one socket to another without being copied (splice(2)).
// One is borrowed only while bytes are in it, so that thousands of idle connections hold none.
#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::egress {

inline constexpr size_t kPipeBytes = 256 * 1024;

struct Pipe {
  Fd read_end, write_end;
};

class PipePool {
 public:
  Result<Pipe> take();
  // It must be empty.
  void give_back(Pipe pipe);

 private:
  std::vector<Pipe> idle_;
};

}  // namespace atl::egress
