// Operation kPorts: who listens inside.
#pragma once

#include <string_view>
#include <vector>

#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/result.h"

namespace atl::agent {

Result<void> list_ports(FileWire& wire);

// The listening sockets of a /proc/net/tcp or tcp6, in the order of their ports, each once.
std::vector<ListeningPort> parse_listening_ports(std::string_view text);

}  // namespace atl::agent
