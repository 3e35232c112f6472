// A value of an answer as people read it, on one line and safe for a terminal.
#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace atl::cli {

// "-" for null; numbers with at most three decimals; an object as "name value, name value".
std::string readable(const boost::json::value& value);

}  // namespace atl::cli
