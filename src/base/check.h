// A broken invariant is a bug: say where and abort, in release builds too. State is on disk and the
// supervisor restarts the process, so stopping is always safer than going on.
#pragma once

namespace atl {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace atl

#define ATOLL_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::atl::check_failed(#condition, __FILE__, __LINE__))
