// What a run gave, as the lines that E2B's code interpreter writes.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "sandbox/speech.h"

namespace atl::api::e2b {

// {"type": "result", "is_main_result", "text"?, "html"?, "png"?, …}
boost::json::object result_line(const sandbox::RunResult& result);

// One line of JSON in ASCII: a client decodes each piece that arrives on its own, and would cut
// characters in two.
std::string ascii_line(const boost::json::value& value);

}  // namespace atl::api::e2b
