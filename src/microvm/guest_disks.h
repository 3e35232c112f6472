// What the first process of a guest finds its hardware by: drivers, disks by their serial numbers,
// and the port by its name. Where each appears depends on the order in which they are found.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::microvm {

// All of kGuestModules; removes their files.
Result<void> load_modules();

// "/dev/vda"; nothing: there is none of that serial number.
std::optional<std::string> find_disk(const std::string& serial);

// The port, non-blocking, once the other side is there.
Result<Fd> open_port(const std::string& name);

}  // namespace atl::microvm
