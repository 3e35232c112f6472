// Values of an answer as people read them, on one line and safe for a terminal.
#pragma once

#include <cstdint>
#include <string>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace atl::cli {

// "-" for null; numbers with at most three decimals; an object as "name value, name value".
std::string readable(const boost::json::value& value);
// "-" also when there is no such field.
std::string readable_field(const boost::json::object& object, std::string_view name);
// 1.5 MiB
std::string readable_size(uint64_t bytes);
// 90s, 2m, 36h, 7d: as it can be typed, but for days, in the largest unit that it is a whole number
// of.
std::string readable_duration(uint64_t milliseconds);

// The field as it is, if it is a string; for use, not for showing.
std::string text_field(const boost::json::object& object, std::string_view name);
// 0 when it is not a whole number.
uint64_t number_field(const boost::json::object& object, std::string_view name);

// Numbers as people write them (8.292); Boost's own serializer writes 8.292E0.
std::string json_text(const boost::json::value& value);
// One line on standard output: all that a command prints with --json.
void print_json(const boost::json::value& value);

}  // namespace atl::cli
