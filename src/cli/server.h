// Which server to talk to, with which key: what the user named, or what the Atoll of this host left
// in its directories.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/listen_address.h"
#include "cli/places.h"

namespace atl::cli {

struct ServerChoice {
  std::string url;  // empty: the one on this host
  std::string key;  // empty: the local key
};

struct Server {
  std::string host;
  unsigned short port = 0;
  std::string key;
};

// http://HOST:PORT only; the key is left empty.
Result<Server> parse_url(std::string_view url);

// What atolld wrote when it began to listen.
Result<ListenAddress> read_address(const Places& places);
Result<std::string> read_local_key(const Places& places);

// The local key is never sent to another host.
Result<Server> find_server(const Places& places, const ServerChoice& choice);

// Asks /readyz; the error names what is unwell, why and since when.
Result<void> check_ready(const std::string& host, unsigned short port);

}  // namespace atl::cli
