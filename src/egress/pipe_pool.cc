#include "egress/pipe_pool.h"

#include <fcntl.h>
#include <unistd.h>

namespace atl::egress {
namespace {

constexpr size_t kMaxIdle = 8;

}  // namespace

Result<Pipe> PipePool::take() {
  if (!idle_.empty()) {
    Pipe pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error::system("pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  // Refused when the user has many; the usual size does as well.
  fcntl(pipe.write_end.get(), F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  return pipe;
}

void PipePool::give_back(Pipe pipe) {
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(pipe));
}

}  // namespace atl::egress
