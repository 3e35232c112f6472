// For tests: waits for a condition that must become true. The limit is for a host that is busy or
// emulated; a test that passes never waits for it.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace atl {

// Factor by which this host is slower than real hardware (tests/guest is emulated).
inline int test_slowness() {
  const char* text = getenv("ATOLL_TEST_SLOW");
  return text == nullptr ? 1 : std::max(1, atoi(text));
}

// Longest time that anything in a test may take.
inline std::chrono::milliseconds test_timeout() {
  return test_slowness() * std::chrono::seconds(30);
}

// The timeout as poll(2) takes it.
inline int test_timeout_ms() { return static_cast<int>(test_timeout().count()); }

// True as soon as `condition` is; false when it was not in time.
template <typename Condition>
bool eventually(Condition condition) {
  auto end = std::chrono::steady_clock::now() + test_timeout();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(2'000);
  }
  return true;
}

}  // namespace atl
