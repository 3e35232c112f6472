// What a client does to a running exec: POST …/execs/{exec}/stdin, …/resize and …/signal.
#pragma once

#include <boost/json/object.hpp>

#include "api/router.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

void add_exec_input_routes(Router& router, sandbox::Sandboxes& sandboxes);

// "cols" and "rows" of a terminal; refused with the prefix of their object.
Result<agent::TerminalSize> parse_terminal_size(const boost::json::object& object,
                                                std::string prefix);
// A name or a number.
Result<int> parse_signal(const boost::json::object& object);

// 409 no_terminal, if it was not started with one.
Result<void> check_terminal(const sandbox::Exec& exec);

}  // namespace atl::api::v1
