#include "egress/inspection_json.h"

#include <boost/json/array.hpp>

#include "egress/invalid_rule.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

constexpr size_t kMaxTextBytes = 300;

}  // namespace

bool is_inspection_key(std::string_view key) {
  return key == "inspect" || key == "methods" || key == "paths";
}

Result<std::vector<std::string>> read_texts(const json::object& object, const char* key,
                                            const std::string& field, size_t most) {
  std::vector<std::string> texts;
  const json::value* value = object.if_contains(key);
  if (value == nullptr) return texts;
  std::string wrong =
      "must be a list of 1 to " + std::to_string(most) + " texts of at most 300 bytes";
  const json::array* list = value->if_array();
  if (list == nullptr || list->empty() || list->size() > most) return invalid_rule(field, wrong);
  for (const json::value& one : *list) {
    const json::string* text = one.if_string();
    if (text == nullptr || text->empty() || text->size() > kMaxTextBytes)
      return invalid_rule(field, wrong);
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

Result<std::optional<RequestRule>> read_inspection(const json::object& rule,
                                                   const std::string& field) {
  const json::value* inspect = rule.if_contains("inspect");
  if (inspect != nullptr && !inspect->is_bool())
    return invalid_rule(field + ".inspect", "must be true or false");
  ATOLL_TRY(auto methods, read_texts(rule, "methods", field + ".methods", kMaxMethods));
  ATOLL_TRY(auto paths, read_texts(rule, "paths", field + ".paths", kMaxPaths));
  bool wanted = inspect != nullptr && inspect->get_bool();
  if (!wanted && !(methods.empty() && paths.empty()))
    return invalid_rule(field, "needs \"inspect\": true for methods and paths");
  if (!wanted) return std::optional<RequestRule>();
  auto made = RequestRule::create(std::move(methods), paths);
  if (!made) return invalid_rule(field, "is refused: " + made.error().message());
  return std::optional(std::move(*made));
}

void write_inspection(const RequestRule& inspection, json::object& rule) {
  rule["inspect"] = true;
  json::array methods, paths;
  for (const std::string& method : inspection.methods) methods.emplace_back(method);
  for (const PathPattern& path : inspection.paths) paths.emplace_back(path.text());
  if (!methods.empty()) rule["methods"] = std::move(methods);
  if (!paths.empty()) rule["paths"] = std::move(paths);
}

}  // namespace atl::egress
