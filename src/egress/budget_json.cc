#include "egress/budget_json.h"

#include <algorithm>

#include <boost/json/object.hpp>

#include "egress/invalid_rule.h"

namespace atl::egress {

namespace json = boost::json;

namespace {

const BudgetField* find_field(std::string_view name) {
  auto found = std::find_if(kBudgetFields.begin(), kBudgetFields.end(),
                            [&](const BudgetField& one) { return one.name == name; });
  return found == kBudgetFields.end() ? nullptr : &*found;
}

}  // namespace

Result<Budget> budget_from_json(const json::value& value, const std::string& field) {
  const json::object* object = value.if_object();
  if (object == nullptr || object->empty())
    return invalid_rule(field, "must be an object with at least one bound");
  Budget budget;
  for (const auto& [key, entry] : *object) {
    std::string name = field + "." + std::string(key);
    const BudgetField* known = find_field({key.data(), key.size()});
    if (known == nullptr) return invalid_rule(name, "is unknown").with_reason("unknown_field");
    json::error_code error;
    auto number = entry.is_number() ? entry.to_number<int64_t>(error) : 0;
    if (error || number < 1 || static_cast<uint64_t>(number) > known->most)
      return invalid_rule(name, "must be a whole number from 1 to " + std::to_string(known->most));
    budget.*known->value = static_cast<uint64_t>(number);
  }
  return budget;
}

json::object budget_to_json(const Budget& budget) {
  json::object object;
  for (const BudgetField& field : kBudgetFields)
    if (budget.*field.value != 0)
      object[json::string_view(field.name.data(), field.name.size())] = budget.*field.value;
  return object;
}

}  // namespace atl::egress
