#include "agent/poll_set.h"

#include <time.h>

#include <algorithm>

namespace atl::agent {

void PollSet::clear() {
  polls_.clear();
  watches_.clear();
}

void PollSet::add(int fd, short events, Watch watch) {
  polls_.push_back({fd, events, 0});
  watches_.push_back(watch);
}

Result<void> PollSet::wait(std::optional<SteadyTime> deadline) {
  timespec timeout = {};
  if (deadline) {
    auto left = *deadline - std::chrono::steady_clock::now();
    auto nanos = std::max<int64_t>(0, std::chrono::nanoseconds(left).count());
    timeout = {static_cast<time_t>(nanos / 1'000'000'000),
               static_cast<long>(nanos % 1'000'000'000)};
  }
  int count = ppoll(polls_.data(), polls_.size(), deadline ? &timeout : nullptr, nullptr);
  if (count >= 0) return {};
  if (errno != EINTR) return Error::system("poll");
  for (pollfd& poll : polls_) poll.revents = 0;
  return {};
}

}  // namespace atl::agent
