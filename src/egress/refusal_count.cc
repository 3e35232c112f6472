#include "egress/refusal_count.h"

#include <algorithm>

namespace atl::egress {

// Which of the lost ones was a marker nobody knows. It is taken to be the first that could be one;
// if the marker comes after all, it stands for the packet that was taken for it.
uint32_t RefusalCount::add(uint32_t sequence, Whose whose) {
  uint32_t lost = sequence - (last_ ? *last_ + 1 : 0);
  last_ = sequence;
  bool awaited = whose == Whose::kOurs && markers_ > 0;
  if (awaited) --markers_;
  uint32_t markers_lost = std::min(lost, markers_);
  markers_ -= markers_lost;
  return lost - markers_lost + (awaited ? 0 : 1);
}

}  // namespace atl::egress
