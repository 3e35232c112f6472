// What a helper process does with one request: the work, then the reply.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "warden/host.h"
#include "warden/protocol.h"

namespace atl::warden {

// An answer to `request` with nothing in it yet.
Reply make_reply(const Request& request, Status status);

// The message to send: a Reply with what follows it, and descriptors.
struct Answer {
  std::string bytes;
  std::vector<Fd> fds;
};
Answer serve_request(const Host& host, const Message& message);

std::string encode_reply(const Reply& reply);

}  // namespace atl::warden
