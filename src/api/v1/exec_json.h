// An exec as JSON: the request it came from, how it ended and what it used.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "sandbox/sandbox.h"

namespace atl::api::v1 {

// What is stored of a request, for lists: no environment, it may hold secrets.
std::string describe(const sandbox::ExecRequest& request);

boost::json::object exec_summary_json(const store::ExecRow& row);
// With the output that is on disk, up to kMaxInlineBytes a stream.
Result<boost::json::object> exec_json(const sandbox::Exec& exec);

}  // namespace atl::api::v1
