// KernelLog: what the kernel complained about since the last look, from /dev/kmsg.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli::selftest {

class KernelLog {
 public:
  // From here on.
  static Result<KernelLog> open();
  std::vector<std::string> take_complaints() const;

 private:
  KernelLog() = default;
  Fd fd_;
};

// Whether a message says that the kernel itself went wrong, or that a module was asked for. A
// program that crashed or ran out of memory is no complaint.
bool is_complaint(std::string_view message);
// The complaint in one record of /dev/kmsg, with the kernel's time and words.
std::optional<std::string> complaint_in(std::string_view record);

}  // namespace atl::cli::selftest
