// The options of `atoll up` about the domain of ports and about TLS, which atolld understands under
// the same names.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/process.h"

namespace atl::cli {

struct TlsOptions {
  std::string domain;
  std::string listen;  // IP:PORT; empty: no TLS
  std::string certificate, key;

  enum class Reach : unsigned char { kLoopbackOnly, kAnywhere };
  // Files become absolute: they are read by another process.
  Result<void> settle(Reach reach);
  void append_to(std::vector<std::string>& arguments) const;
  // Refuses files that the user of atolld cannot read.
  Result<void> check_readable(const Identity& daemon) const;
};

}  // namespace atl::cli
