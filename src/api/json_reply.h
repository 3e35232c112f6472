// JSON on the way out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "http/message.h"

namespace atl::api {

// Numbers are written as people write them (8.292); Boost's own serializer writes 8.292E0.
std::string json_text(const boost::json::value& value);
http::Response json_reply(int status, const boost::json::value& value);

// Durations are milliseconds with a resolution of a microsecond.
inline double to_ms(uint64_t microseconds) { return static_cast<double>(microseconds) / 1000.0; }

// ?limit=, from 1 to 1000, by default 100; nothing if it is not such a number.
std::optional<size_t> page_limit(const std::string& query);

}  // namespace atl::api
