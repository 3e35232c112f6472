#include "api/query.h"

#include <charconv>

namespace atl::api {

namespace {

// query_parameter() gives nothing also for what is malformed.
bool is_named(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    if (pair.substr(0, pair.find('=')) == name) return true;
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return false;
}

}  // namespace

Error invalid_parameter(std::string_view name, std::string_view must) {
  return Error(Code::kInvalid, std::string(name) + " " + std::string(must))
      .with_reason("invalid_field")
      .with_field(name);
}

Result<std::optional<uint64_t>> number_parameter(std::string_view name,
                                                 const http::Request& request) {
  if (!is_named(request.query, name)) return std::optional<uint64_t>();
  std::string text = http::query_parameter(request.query, name).value_or("");
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid_parameter(name, "must be a whole number");
  return std::optional(number);
}

Result<std::optional<std::string>> text_parameter(std::string_view name,
                                                  const http::Request& request) {
  if (!is_named(request.query, name)) return std::optional<std::string>();
  auto text = http::query_parameter(request.query, name);
  if (!text) return invalid_parameter(name, "may be there once, in UTF-8");
  return text;
}

Result<bool> flag_parameter(std::string_view name, const http::Request& request) {
  if (!is_named(request.query, name)) return false;
  std::string text = http::query_parameter(request.query, name).value_or("");
  if (text != "true" && text != "false")
    return invalid_parameter(name, "must be \"true\" or \"false\"");
  return text == "true";
}

}  // namespace atl::api
