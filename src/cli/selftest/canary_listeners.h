// CanaryListeners: sockets of the host on which nobody has any business: a port of the loopback
// interface, an abstract name and a path. Every connection to one is a hole.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli::selftest {

class CanaryListeners {
 public:
  // The path's socket is made in `directory`, open to everybody.
  static Result<CanaryListeners> open(const std::string& directory);

  unsigned short port() const { return port_; }
  const std::string& abstract_name() const { return abstract_name_; }
  const std::string& path() const { return path_; }

  // The names of those that were reached since the last call.
  std::vector<std::string> take_hits() const;

 private:
  CanaryListeners() = default;

  Fd tcp_;
  Fd abstract_;
  Fd file_;
  unsigned short port_ = 0;
  std::string abstract_name_;
  std::string path_;
};

}  // namespace atl::cli::selftest
