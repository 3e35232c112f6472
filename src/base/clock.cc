#include "base/clock.h"

#include <time.h>

#include <fmt/format.h>

namespace atl {

std::string to_rfc3339(WallTime time) {
  auto whole = std::chrono::floor<std::chrono::seconds>(time);
  auto rest = std::chrono::floor<std::chrono::milliseconds>(time - whole);
  time_t seconds = std::chrono::system_clock::to_time_t(whole);
  struct tm parts;
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     rest.count());
}

}  // namespace atl
