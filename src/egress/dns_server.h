// The answers to a sandbox's questions: a synthetic address for a name that a rule allows, and for
// every other that there is no such name. Nothing is ever passed on.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/fd.h"
#include "egress/gate.h"
#include "egress/task.h"

namespace atl::egress {

// The answer to one message; empty: none. Records the question.
std::string answer_question(Gate& gate, std::span<const unsigned char> message);

// All datagrams that wait at the socket.
void answer_datagrams(Gate& gate, int socket);

Task<void> serve_dns_stream(std::shared_ptr<Gate> gate, Fd accepted);

}  // namespace atl::egress
