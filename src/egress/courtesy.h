// Who says little goes first. A transfer at full speed keeps the processors of both of its ends
// busy, and whoever asks and answers in small pieces waits for them, not for us: so, while another
// sandbox does, large pieces come with a breath between them.
//
// One thread.
#pragma once

#include <chrono>

#include "base/clock.h"

namespace atl::egress {

class Gate;

class Courtesy {
 public:
  static constexpr size_t kLargePiece = 64 * 1024;
  // Long enough for what a small piece wakes to run; with a full pipe between two of them a
  // transfer still has some 400 MB/s.
  static constexpr std::chrono::microseconds kBreath{500};

  // A piece went through, of one of the sandbox's connections. True: take a breath before the next.
  bool passed(const Gate* sandbox, size_t bytes, SteadyTime now) {
    if (bytes < kLargePiece) {
      if (last_.sandbox != sandbox) before_ = last_;
      last_ = {sandbox, now};
      return false;
    }
    const Speaker& other = last_.sandbox == sandbox ? before_ : last_;
    return other.sandbox != nullptr && now - other.at < kRecent;
  }

 private:
  static constexpr std::chrono::milliseconds kRecent{3};

  struct Speaker {
    const Gate* sandbox = nullptr;  // only compared: it may be gone
    SteadyTime at;
  };
  Speaker last_, before_;  // two different ones
};

}  // namespace atl::egress
