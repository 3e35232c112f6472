#include "egress/secret_text.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace atl::egress {

namespace json = boost::json;

Result<std::string> name_of_shown(const std::string& line) {
  json::error_code error;
  json::value value = json::parse(line, error);
  const json::value* name = value.is_object() ? value.get_object().if_contains("name") : nullptr;
  if (name == nullptr || !name->is_string()) return Error(Code::kCorrupt, "a secret has no name");
  return std::string(name->get_string());
}

std::string add_variables(const std::string& own,
                          const std::vector<std::pair<std::string, std::string>>& more) {
  json::error_code error;
  json::value value = json::parse(own, error);
  if (!value.is_object()) return own;
  json::object& all = value.get_object();
  for (const auto& [name, text] : more)
    if (!all.contains(name)) all[name] = text;
  return json::serialize(all);
}

}  // namespace atl::egress
