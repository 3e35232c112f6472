#include "cli/duration.h"

#include <array>
#include <charconv>
#include <string>

namespace atl::cli {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t milliseconds;
};
constexpr std::array kUnits = {Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000},
                               Unit{"h", 3'600'000}};

}  // namespace

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  Error malformed(Code::kInvalid,
                  "duration \"" + std::string(text) + "\" is not a number with ms, s, m or h");
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return malformed;
  std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (suffix != unit.suffix) continue;
    uint64_t limit = static_cast<uint64_t>(std::chrono::milliseconds(kMaxDuration).count());
    if (number == 0 || number > limit / unit.milliseconds)
      return Error(Code::kInvalid,
                   "duration \"" + std::string(text) + "\" must be between 1ms and 168h");
    return std::chrono::milliseconds(number * unit.milliseconds);
  }
  return malformed;
}

}  // namespace atl::cli
