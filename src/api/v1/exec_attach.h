// WS …/execs/{exec}/attach: an exec at a client's terminal. Binary messages are bytes (output to
// the client, input from it), text messages are JSON: {"offset"} first and {"exit"} last from the
// server, {"resize"}, {"signal"} and {"eof"} from the client. One client at a time.
#pragma once

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_exec_attach_route(Router& router, sandbox::Sandboxes& sandboxes);

}  // namespace atl::api::v1
