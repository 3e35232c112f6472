#include "gvisor/still_layer.h"

#include <sys/socket.h>

#include <utility>

#include "agent/still_files.h"
#include "base/file.h"

namespace atl::gvisor {

using microvm::RelayKind;

void StillLayer::begin(Fd asker) {
  if (asked_) {
    next_ = std::move(asker);
    return;
  }
  asker_ = std::move(asker);
  asked_ = true;
  kept_ = false;
  tell_(RelayKind::kKeepFiles);
}

void StillLayer::take_answer(int system_errno) {
  if (!asked_ || kept_) return;
  kept_ = true;
  // EIO: the sentry answered, and refused (Control::call).
  if (system_errno == EIO) (void)write_all(asker_.get(), agent::kCannot);
  bool is_still = system_errno == 0 && write_all(asker_.get(), agent::kIsStill).ok();
  if (!is_still) end();
}

void StillLayer::add_watches(std::vector<pollfd>& polls) const {
  if (kept_) polls.push_back({.fd = asker_.get(), .events = POLLIN, .revents = 0});
}

void StillLayer::look() {
  if (!kept_) return;
  char byte;
  ssize_t count = recv(asker_.get(), &byte, 1, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count == 1) (void)write_all(asker_.get(), agent::kGoesOn);
  end();
}

void StillLayer::end() {
  asker_.reset();
  asked_ = kept_ = false;
  tell_(RelayKind::kFilesTaken);
  if (next_) begin(std::exchange(next_, Fd()));
}

}  // namespace atl::gvisor
