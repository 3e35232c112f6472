#include "cli/readable.h"

#include <stdio.h>

#include <array>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

std::string decimal(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string fields(const json::object& object) {
  std::string text;
  for (const auto& field : object) {
    if (!text.empty()) text += ", ";
    text += escape_line(std::string(field.key())) + " " + readable(field.value());
  }
  return text.empty() ? "-" : text;
}

std::string elements(const json::array& array) {
  std::string text;
  for (const json::value& element : array) text += (text.empty() ? "" : ", ") + readable(element);
  return text.empty() ? "-" : text;
}

}  // namespace

std::string readable(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "-";
    case json::kind::string:
      return escape_line(std::string_view(value.get_string().data(), value.get_string().size()));
    case json::kind::double_:
      return decimal(value.get_double());
    case json::kind::object:
      return fields(value.get_object());
    case json::kind::array:
      return elements(value.get_array());
    default:
      return json::serialize(value);
  }
}

std::string readable_field(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  return value == nullptr ? "-" : readable(*value);
}

std::string readable_size(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{:.{}f} {}", size, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string readable_duration(uint64_t milliseconds) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}};
  for (const auto& [size, name] : kUnits)
    if (milliseconds >= size && milliseconds % size == 0)
      return std::to_string(milliseconds / size) + name;
  return std::to_string(milliseconds) + "ms";
}

std::string text_field(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return "";
  return {value->get_string().data(), value->get_string().size()};
}

uint64_t number_field(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr) return 0;
  json::error_code error;
  uint64_t number = value->to_number<uint64_t>(error);
  return error ? 0 : number;
}

std::string json_text(const json::value& value) {
  std::string text;
  if (const json::object* object = value.if_object()) {
    for (const auto& entry : *object)
      text +=
          (text.empty() ? "" : ",") + json::serialize(entry.key()) + ":" + json_text(entry.value());
    return "{" + text + "}";
  }
  if (const json::array* array = value.if_array()) {
    for (const json::value& element : *array)
      text += (text.empty() ? "" : ",") + json_text(element);
    return "[" + text + "]";
  }
  return value.is_double() ? fmt::format("{}", value.get_double()) : json::serialize(value);
}

void print_json(const json::value& value) { printf("%s\n", json_text(value).c_str()); }

}  // namespace atl::cli
