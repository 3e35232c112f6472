// A place in a list as text, "<sequence>.<id>": what cursors of the API are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl::store {

struct Place {
  int64_t sequence;
  std::string_view id;
};

std::string write_place(const Place& place);
// Nothing: malformed. Cursors of releases that ordered by time had a hyphen, and are malformed too.
std::optional<Place> read_place(std::string_view text);

}  // namespace atl::store
