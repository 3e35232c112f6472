// Sequence: numbers that order what was asked for. A clock cannot: two rows may have one
// millisecond, and the time may be set back.
//
// A number is greater than all that were drawn before it, also by an earlier process: each start
// has a range of its own, so a draw writes nothing. A row takes its number in the turn of the
// thread in which it is handed to the catalog; rows become visible in the order of their numbers
// then.
//
// Any thread may draw.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace atl::store {

// A thousand draws a second use up a range in 34 years. The rows of catalogs that had no sequence
// are numbered from 1, in the range before the first start.
inline constexpr int64_t kDrawsOfOneStart = int64_t{1} << 40;

class Sequence {
 public:
  explicit Sequence(int64_t first) : next_(first) {}
  int64_t draw() { return next_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> next_;
};

// Counts one more start in the table and gives the first number of its range.
Result<int64_t> begin_sequence(Database& database);

}  // namespace atl::store
