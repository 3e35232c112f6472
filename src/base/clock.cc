#include "base/clock.h"

#include <time.h>

#include <fmt/format.h>

namespace atl {

std::string to_rfc3339(WallTime time) {
  auto since_epoch =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  time_t seconds = static_cast<time_t>(since_epoch / 1000);
  struct tm parts;
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     since_epoch % 1000);
}

}  // namespace atl
