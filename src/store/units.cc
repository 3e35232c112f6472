#include "store/units.h"

#include <charconv>
#include <span>

namespace atl::store {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kSizes[] = {
    {"B", 1}, {"KiB", 1ull << 10}, {"MiB", 1ull << 20}, {"GiB", 1ull << 30}, {"TiB", 1ull << 40}};
constexpr Unit kDurations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};

std::optional<uint64_t> parse(std::string_view text, std::span<const Unit> units) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    uint64_t product = 0;
    if (unit.name != name) continue;
    if (__builtin_mul_overflow(number, unit.factor, &product)) return std::nullopt;
    return product;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) { return parse(text, kSizes); }

std::optional<uint64_t> parse_duration(std::string_view text) { return parse(text, kDurations); }

}  // namespace atl::store
