// A policy as JSON, the form in which the API takes and shows it and in which egress is told:
//   {"rules": [{"allow": "*.example.com", "ports": [443], "protocol": "tls"},
//              {"allow": "api.example.com", "inspect": true, "methods": ["GET"], "paths":
//              ["/v1/**"]},
//              {"deny": "…"}],
//    "allow": ["pypi.org", "files.pythonhosted.org:443"], "budget": {…}, "mode": "learn",
//    "secrets": ["TOKEN"], "upstream": {"proxy": "proxy.example.com:3128"},
//    "public_names": true}
// All may be missing. Strict: an unknown key is an error, and every error names its field.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "egress/policy.h"

namespace atl::egress {

inline constexpr size_t kMaxPolicyBytes = 128 * 1024;  // of its text

Result<Policy> policy_from_json(const boost::json::object& object);
Result<Policy> parse_policy_json(std::string_view text);
boost::json::object policy_to_json(const Policy& policy);
std::string policy_text(const Policy& policy);

// "auto", "tls", "http", "tcp".
Result<Protocol> parse_protocol(std::string_view text);
// Range rules, and rules without a name that bytes could be compared with, have rules of their own.
Result<void> check_rule(const Rule& rule);
// Of each connection one rule counts what is said: a rule with a budget cannot share hosts and
// ports with one before it that leaves some of their requests to it, nor be such a one.
Result<void> check_budgets(const Policy& policy);

}  // namespace atl::egress
