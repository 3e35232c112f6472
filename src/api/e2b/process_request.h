// Messages about processes: how one is to be started, and which one is meant.
#pragma once

#include <memory>
#include <string>

#include <boost/json/object.hpp>

#include "api/json_reader.h"
#include "base/result.h"
#include "http/exchange.h"
#include "sandbox/ledger.h"
#include "sandbox/sandbox.h"

namespace atl::api::e2b {

// For that user; without a time limit of its own.
Result<sandbox::ExecRequest> parse_start(const boost::json::object& message,
                                         const sandbox::Sandbox& sandbox, std::string user);

// Those that run, in the order of their start. Interpreters of contexts are none.
http::Task<Result<std::vector<std::shared_ptr<sandbox::Exec>>>> live_processes(
    std::shared_ptr<sandbox::Sandbox> sandbox, sandbox::Ledger& ledger);
// The one of them that the field "process" names by its pid.
http::Task<Result<std::shared_ptr<sandbox::Exec>>> selected_process(
    const boost::json::object& message, std::shared_ptr<sandbox::Sandbox> sandbox,
    sandbox::Ledger& ledger);
// The number of the field; 0 if there is none.
Result<uint32_t> selected_pid(const boost::json::object& message);
Error no_such_process(uint32_t pid);

// {"pty": {"size": {"cols", "rows"}}}; nothing if there is none.
Result<std::optional<agent::TerminalSize>> parse_terminal(const boost::json::object& message);

bool has_terminal(const sandbox::Exec& exec);
// {"config": {"cmd", "args", "cwd"?}, "pid"}
boost::json::object process_json(const sandbox::Exec& exec);

}  // namespace atl::api::e2b
