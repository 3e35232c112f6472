// A budget as JSON: {"bytes_out": 1000000, "connections": 10}. What is missing has no bound.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "base/result.h"
#include "egress/budget.h"

namespace atl::egress {

// `field` is for messages: "budget", "rules[0].budget".
Result<Budget> budget_from_json(const boost::json::value& value, const std::string& field);
boost::json::object budget_to_json(const Budget& budget);

}  // namespace atl::egress
