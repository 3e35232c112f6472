#include "agent/freeze_watch.h"

#include <unistd.h>

#include <string_view>
#include <utility>

namespace atl::agent {

void FreezeWatch::add_watches(PollSet& polls) const {
  if (events_) polls.add(events_.get(), POLLPRI, {Source::kFrozen});
}

std::optional<SteadyTime> FreezeWatch::noticed(SteadyTime now) {
  char text[256];
  ssize_t count = pread(events_.get(), text, sizeof text, 0);  // takes the news off it too
  if (count < 0) return std::nullopt;
  std::string_view events(text, static_cast<size_t>(count));
  bool frozen = events.find("frozen 1\n") != std::string_view::npos;
  if (frozen && !since_) since_ = now;
  return frozen ? std::nullopt : std::exchange(since_, std::nullopt);
}

}  // namespace atl::agent
