#include "api/json_reply.h"

#include <charconv>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace atl::api {

namespace json = boost::json;

namespace {

void append(std::string& out, const json::value& value);

void append_object(std::string& out, const json::object& object) {
  out += '{';
  for (const auto& entry : object) {
    if (out.back() != '{') out += ',';
    out += json::serialize(json::string_view(entry.key()));
    out += ':';
    append(out, entry.value());
  }
  out += '}';
}

void append_array(std::string& out, const json::array& array) {
  out += '[';
  for (const json::value& element : array) {
    if (out.back() != '[') out += ',';
    append(out, element);
  }
  out += ']';
}

void append(std::string& out, const json::value& value) {
  if (value.is_object()) {
    append_object(out, value.get_object());
  } else if (value.is_array()) {
    append_array(out, value.get_array());
  } else if (value.is_double()) {
    fmt::format_to(std::back_inserter(out), "{}", value.get_double());
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string json_text(const json::value& value) {
  std::string text;
  append(text, value);
  return text;
}

http::Response json_reply(int status, const json::value& value) {
  http::Response response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = json_text(value) + '\n';
  return response;
}

std::optional<size_t> page_limit(const std::string& query) {
  auto values = http::query_parameters(query, "limit");
  if (!values || values->size() > 1) return std::nullopt;
  if (values->empty()) return 100;
  const std::string& text = values->front();
  size_t limit = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || limit < 1 || limit > 1000) return std::nullopt;
  return limit;
}

}  // namespace atl::api
