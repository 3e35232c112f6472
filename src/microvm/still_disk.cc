#include "microvm/still_disk.h"

#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/still_files.h"
#include "base/file.h"

namespace atl::microvm {
namespace {

constexpr int kLongestMs = 60'000;

[[noreturn]] void hold(int mount, const Fd& asker) {
  // Most of what is to be written is written while everything still runs.
  (void)syncfs(mount);
  if (ioctl(mount, FIFREEZE, 0) != 0) _exit(1);
  (void)write_all(asker.get(), agent::kIsStill);
  pollfd waiting = {.fd = asker.get(), .events = POLLIN, .revents = 0};
  bool answered = poll(&waiting, 1, kLongestMs) == 1;
  bool was_still = ioctl(mount, FITHAW, 0) == 0;
  char byte;
  bool was_kept = answered && recv(asker.get(), &byte, 1, MSG_DONTWAIT) == 1;
  if (was_kept && was_still) (void)write_all(asker.get(), agent::kGoesOn);
  _exit(0);
}

}  // namespace

void StillDisk::begin(Fd asker) {
  // The one before has lost its asker, and ends.
  while (holder_ > 0 && waitpid(holder_, nullptr, 0) < 0 && errno == EINTR) {
  }
  holder_ = fork();
  if (holder_ == 0) hold(mount_.get(), asker);
}

}  // namespace atl::microvm
