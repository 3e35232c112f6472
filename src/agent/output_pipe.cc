#include "agent/output_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace atl::agent {
namespace {

constexpr size_t kChunkBytes = 32 * 1024;
constexpr size_t kDiscardBytes = 1024 * 1024;
// More than the kernel keeps between the two ends of a terminal, which is 12 KiB.
constexpr uint64_t kTerminalBytes = 64 * 1024;

bool try_later(int system_errno) { return system_errno == EAGAIN; }

}  // namespace

bool discard_some(int pipe, int null_device, uint64_t& discarded, size_t limit) {
  // splice moves pages without copying: a program that floods a pipe pays for it, the agent hardly
  // does. There are none in a terminal.
  ssize_t count = splice(pipe, nullptr, null_device, nullptr, limit, SPLICE_F_NONBLOCK);
  if (count < 0 && errno == EINVAL) {
    char chunk[kChunkBytes];
    count = read(pipe, chunk, std::min(limit, sizeof chunk));
  }
  if (count < 0) return try_later(errno);
  discarded += static_cast<uint64_t>(count);
  return count > 0;
}

bool OutputPipe::wants_read() const {
  if (!fd_ || finished()) return false;
  return stream_.limit_reached() || stream_.room() > 0;
}

void OutputPipe::read_some(int null_device) {
  if (!wants_read()) return;
  auto most = static_cast<size_t>(std::min<uint64_t>(left_.value_or(kDiscardBytes), kDiscardBytes));
  if (stream_.limit_reached()) {
    uint64_t discarded = 0;
    bool open = discard_some(fd_.get(), null_device, discarded, most);
    stream_.count_cut(discarded);
    open ? took(discarded) : end();
    return;
  }
  char chunk[kChunkBytes];
  ssize_t count = read(fd_.get(), chunk, std::min({most, sizeof chunk, stream_.room()}));
  if (count < 0 && try_later(errno)) return took(0);
  if (count <= 0) return end();
  stream_.append({chunk, static_cast<size_t>(count)});
  took(static_cast<uint64_t>(count));
}

void OutputPipe::read_present(int null_device) {
  uint64_t end = taken() + present();
  uint64_t before = 0;
  do {
    before = taken();
    read_some(null_device);
  } while (taken() != before && taken() < end);
}

void OutputPipe::took(uint64_t bytes) {
  if (!left_) return;
  // Empty before its time: the program opened its own pipe for reading and took from it.
  left_ = bytes == 0 ? 0 : *left_ - std::min(*left_, bytes);
}

void OutputPipe::end() {
  fd_.reset();
  if (left_) left_ = 0;
}

void OutputPipe::finish() {
  // A pipe is first in, first out: all that the main process wrote is among these bytes.
  left_ = present();
}

uint64_t OutputPipe::present() const {
  if (!fd_) return 0;
  // Nothing counts the bytes that are on their way through a terminal; reading finds them all
  // before it says that there is none.
  if (kind_ == Kind::kTerminal) return kTerminalBytes;
  int queued = 0;
  return ioctl(fd_.get(), FIONREAD, &queued) == 0 ? static_cast<uint64_t>(queued) : 0;
}

Fd OutputPipe::release() {
  left_ = 0;
  return std::move(fd_);
}

}  // namespace atl::agent
