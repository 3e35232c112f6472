// A tar archive (POSIX pax) on the way out, as text to be sent piece by piece: the caller sends
// header(), the entry's bytes, padding(), …, and end(). What ustar cannot say (long or non-ASCII
// names, sizes over 8 GiB, times) goes into pax records.
#pragma once

#include <cstdint>
#include <string>

#include "store/tar_entry.h"

namespace atl::store {

std::string tar_header(const TarEntry& entry);
// What follows the bytes of an entry of that size.
std::string tar_padding(uint64_t size);
std::string tar_end();

}  // namespace atl::store
