// The command line of atoll-egress.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace atl::egress {

struct Options {
  std::string state_directory;  // its own: audit logs, tables of names
  std::string run_directory;    // its own: socket, lock
  uid_t client_uid = 0;
  std::string ceiling = "/etc/atoll/egress.toml";
  std::string upstream = "/etc/atoll/upstream.toml";
  std::string retention = "/etc/atoll/audit.toml";
  std::string resolvers = {};                            // empty: those of the host
  std::string authorities = "/etc/atoll/egress-ca.pem";  // believed besides those of the host
};

inline constexpr std::string_view kUsage =
    "usage: atoll-egress --state-dir D --run-dir R --client-uid N [--ceiling FILE] "
    "[--upstream FILE] [--retention FILE] [--resolvers ADDRESS[:PORT],...] [--authorities FILE]";

Result<Options> parse_options(const std::vector<std::string>& arguments);

}  // namespace atl::egress
