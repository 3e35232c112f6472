// The ranges of addresses that are open in a closed network (closed_network.h), in a form of a
// fixed size that one process can tell another.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace atl::linux {

struct AddressRange {
  uint8_t prefix_bits;
  uint8_t address_bytes;  // 4 or 16
  uint8_t reserved[2];
  std::array<unsigned char, 16> first;  // zero behind the prefix
};

struct OpenRanges {
  uint64_t count;  // how many of the list are used; the others are zero
  std::array<AddressRange, 64> list;

  std::span<const AddressRange> ranges() const { return std::span(list).first(count); }
  // Every field, for one that somebody else has written.
  Result<void> check() const;
};
static_assert(std::is_trivially_copyable_v<OpenRanges> && sizeof(OpenRanges) == 1288);

// Opens these and closes those that were open before, in the caller's network namespace, which has
// been closed. None may lie in another.
Result<void> open_ranges(const OpenRanges& open);

}  // namespace atl::linux
