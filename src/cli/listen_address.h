// HOST:PORT as people write it: "127.0.0.1:4700", "[::1]:4700". Numeric addresses only.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::cli {

// Where an Atoll listens unless it is told otherwise.
inline constexpr const char* kDefaultListen = "127.0.0.1:4700";

struct ListenAddress {
  std::string host;  // without brackets
  unsigned short port = 0;

  static Result<ListenAddress> parse(std::string_view text);
  std::string string() const;
  bool is_loopback() const;
  // kConflict when another program listens there; found out by binding, which is undone at once.
  Result<void> check_free() const;
  // Where a client on this host reaches it: a wildcard is answered on loopback too.
  ListenAddress reachable() const;
};

}  // namespace atl::cli
