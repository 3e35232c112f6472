#include "agent/oom_watch.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

namespace atl::agent {
namespace {

// Between notice and kill the kernel writes a report of many lines to its console: 50 to 155 ms on
// a busy machine with a serial one, 3 to 9 ms when the report was left out.
constexpr auto kLongest = std::chrono::seconds(10);
constexpr auto kFirstPause = std::chrono::milliseconds(5);
constexpr auto kLastPause = std::chrono::milliseconds(100);

bool is_v2_file(int fd) {
  struct statfs status;
  return fstatfs(fd, &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

OomWatch::OomWatch(Fd notice, OnOom on_oom) : poll_events_(POLLIN) {
  if (on_oom == OnOom::kEndExec) return;
  notice_ = std::move(notice);
  // A v2 file always counts as readable; its news is POLLPRI.
  if (is_v2_file(notice_.get())) poll_events_ = POLLPRI;
}

void OomWatch::add_watches(PollSet& polls) const {
  if (notice_) polls.add(notice_.get(), poll_events_, {Source::kOomNotice});
}

void OomWatch::noticed(SteadyTime now) {
  // Either way of reading takes the news off the descriptor; an eventfd has no offset to start at.
  char text[1024];
  [[maybe_unused]] ssize_t count = poll_events_ == POLLPRI
                                       ? pread(notice_.get(), text, sizeof text, 0)
                                       : read(notice_.get(), text, sizeof text);
  watch_until_ = now + kLongest;
  pause_ = kFirstPause;
  check_at_ = now;
}

bool OomWatch::check(uint64_t memory_kills, SteadyTime now) {
  if (!check_at_ || now < *check_at_) return false;
  bool killed = memory_kills > seen_kills_;
  seen_kills_ = memory_kills;
  check_at_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLastPause);
  if (killed || now > watch_until_) check_at_.reset();
  return killed;
}

}  // namespace atl::agent
