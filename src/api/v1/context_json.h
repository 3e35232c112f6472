// Contexts and runs as the API shows them.
#pragma once

#include <boost/json/object.hpp>

#include "sandbox/context.h"
#include "sandbox/run_reader.h"

namespace atl::api::v1 {

Error no_such_context();

boost::json::object context_json(const sandbox::Context& context);
boost::json::object run_summary_json(const store::RunRow& row);
// With what it printed and gave, read from the beginning.
Result<boost::json::object> run_json(std::shared_ptr<sandbox::ContextRun> run);

boost::json::object result_json(const sandbox::RunResult& result);
// Of what an interpreter says, which may be anything.
boost::json::object completion_json(const std::string& said);
boost::json::object error_json(const sandbox::RunError& error);

}  // namespace atl::api::v1
