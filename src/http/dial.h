// Dialling a server, for the blocking clients. Private to this folder.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::http {

// HOST:PORT as it stands in a Host field.
std::string host_field(const std::string& host, unsigned short port);

// A connected socket that does not block; tries every address of the name until `deadline`.
Result<Fd> dial(const std::string& host, unsigned short port, SteadyTime deadline);

// kTimeout when none of `events` came.
Result<void> wait_for_socket(int fd, short events, SteadyTime deadline);

}  // namespace atl::http
