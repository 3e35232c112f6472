// Networks as E2B's clients write them. Their "rules" are fields that egress sets:
//   {"api.example.com": [{"transform": {"headers": {"Authorization": "Bearer ${e2b.secrets.a}"}}}]}
#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "egress/policy.h"

namespace atl::api::e2b {

// kInvalid, or kUnsupported for what there is not (tokens of workloads, rules for addresses).
Result<std::vector<egress::HeaderSetting>> parse_network_rules(const boost::json::object& network);
// The network of a sandbox (network_text()), as these clients are shown it.
boost::json::object network_json(const std::string& network);

}  // namespace atl::api::e2b
