#include "cli/size.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>

namespace atl::cli {
namespace {

struct Unit {
  std::string_view suffix;
  int shift;
};
constexpr std::array kUnits = {Unit{"", 0},     Unit{"B", 0},    Unit{"KiB", 10},
                               Unit{"MiB", 20}, Unit{"GiB", 30}, Unit{"TiB", 40}};

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  Error malformed(Code::kInvalid, "size \"" + std::string(text) +
                                      "\" is not a whole number with B, KiB, MiB, GiB or TiB");
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return malformed;
  std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (suffix != unit.suffix) continue;
    if (number > std::numeric_limits<uint64_t>::max() >> unit.shift) return malformed;
    return number << unit.shift;
  }
  return malformed;
}

}  // namespace atl::cli
