#include "agent/remains.h"

#include <unistd.h>

#include "agent/output_pipe.h"

namespace atl::agent {
namespace {

constexpr size_t kDiscardBytes = 1024 * 1024;
constexpr auto kRetry = std::chrono::milliseconds(200);

}  // namespace

Remains::Remains(Leaf leaf, Fd stdout_pipe, Fd stderr_pipe, Joining joining)
    : leaf_(leaf), pipes_{std::move(stdout_pipe), std::move(stderr_pipe)}, joining_(joining) {}

void Remains::add_watches(PollSet& polls) const {
  for (const Fd& pipe : pipes_)
    if (pipe) polls.add(pipe.get(), POLLIN, {Source::kLeftPipe, leaf_.number()});
  if (events_) polls.add(events_.get(), POLLPRI, {Source::kLeftLeaf, leaf_.number()});
}

void Remains::discard_output(int null_device) {
  for (Fd& pipe : pipes_) {
    uint64_t discarded = 0;
    if (pipe && !discard_some(pipe.get(), null_device, discarded, kDiscardBytes)) pipe.reset();
  }
}

void Remains::try_to_remove(SteadyTime now) {
  if (removed_) return;
  if (!events_) {
    auto events = leaf_.open_events();
    if (events) events_ = std::move(*events);
  }
  // Reading is what arms the next POLLPRI, so it comes before the attempt: a change after it is
  // seen.
  char text[256];
  bool armed = events_ && pread(events_.get(), text, sizeof text, 0) > 0;
  Leaf::Removal removal = leaf_.remove();
  removed_ = removal == Leaf::Removal::kRemoved;
  if (removed_) events_.reset();
  bool must_retry = !removed_ && (!armed || removal == Leaf::Removal::kBusy);
  retry_at_ = must_retry ? std::optional(now + kRetry) : std::nullopt;
}

}  // namespace atl::agent
