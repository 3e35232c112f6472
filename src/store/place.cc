#include "store/place.h"

#include <charconv>

namespace atl::store {

std::string write_place(const Place& place) {
  return std::to_string(place.sequence) + "." + std::string(place.id);
}

std::optional<Place> read_place(std::string_view text) {
  size_t dot = text.find('.');
  if (dot == text.npos || dot == 0) return std::nullopt;
  int64_t sequence = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + dot, sequence);
  if (error != std::errc() || end != text.data() + dot) return std::nullopt;
  return Place{sequence, text.substr(dot + 1)};
}

}  // namespace atl::store
