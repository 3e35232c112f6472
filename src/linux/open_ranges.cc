#include "linux/open_ranges.h"

#include <algorithm>
#include <vector>

#include "linux/closed_network.h"

namespace atl::linux {
namespace {

Error invalid(const char* what) { return Error(Code::kInvalid, what); }

bool is_unused(const AddressRange& range) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&range);
  return std::all_of(bytes, bytes + sizeof range, [](unsigned char byte) { return byte == 0; });
}

Result<void> check_range(const AddressRange& range) {
  if (range.address_bytes != 4 && range.address_bytes != 16) return invalid("bad address");
  if (range.prefix_bits > range.address_bytes * 8u) return invalid("bad prefix");
  if (range.reserved[0] != 0 || range.reserved[1] != 0) return invalid("a reserved field is set");
  for (unsigned bit = range.prefix_bits; bit < range.first.size() * 8; ++bit)
    if ((range.first[bit / 8] & (0x80u >> (bit % 8))) != 0)
      return invalid("bits behind a prefix are set");
  return {};
}

}  // namespace

Result<void> OpenRanges::check() const {
  if (count > list.size()) return invalid("too many ranges");
  for (const AddressRange& range : ranges()) ATOLL_TRY_VOID(check_range(range));
  if (!std::all_of(list.begin() + static_cast<long>(count), list.end(), is_unused))
    return invalid("a range that is not counted");
  return {};
}

Result<void> open_ranges(const OpenRanges& open) {
  std::vector<AddressPrefix> four, six;
  for (const AddressRange& range : open.ranges())
    (range.address_bytes == 4 ? four : six)
        .push_back({std::span(range.first).first(range.address_bytes), range.prefix_bits});
  ATOLL_TRY_VOID(replace_ranges(kNetworkTable, kRangesV4, four));
  return replace_ranges(kNetworkTable, kRangesV6, six);
}

}  // namespace atl::linux
