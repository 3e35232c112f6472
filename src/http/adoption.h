// A connection that came in by another way than a server's own listener. Private to this folder.
#pragma once

#include <string>

#include "base/fd.h"
#include "http/server.h"

namespace atl::http {

// The server, made by Server::listen(), serves what comes over a connected stream socket that does
// not block, as if it had been accepted. `peer` is what Exchange::peer_network() tells.
void adopt(Server& server, Fd socket, std::string peer);

}  // namespace atl::http
