// RefusalCount: how many packets of a sandbox each message of the kernel stands for. The kernel
// numbers its messages; numbers that are missing are packets whose messages were lost. Markers are
// packets of our own, to be refused too: they have numbers and count for nothing, and a marker's
// message can be lost like any other.
#pragma once

#include <cstdint>
#include <optional>

namespace atl::egress {

class RefusalCount {
 public:
  enum class Whose { kSandbox, kOurs };

  void marker_sent() { ++markers_; }

  // The sandbox's packets since the message before, this one's included.
  uint32_t add(uint32_t sequence, Whose whose);

 private:
  std::optional<uint32_t> last_;
  // Sent, and neither seen nor taken to be among what was lost.
  uint32_t markers_ = 0;
};

}  // namespace atl::egress
