// The part of a rule in JSON that is about inspection: "inspect", "methods", "paths".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "egress/request_rule.h"

namespace atl::egress {

bool is_inspection_key(std::string_view key);
// Nothing: the rule does not inspect. `field` names the rule in errors.
Result<std::optional<RequestRule>> read_inspection(const boost::json::object& rule,
                                                   const std::string& field);
void write_inspection(const RequestRule& inspection, boost::json::object& rule);

// A list of at most `most` texts, empty if it is not there.
Result<std::vector<std::string>> read_texts(const boost::json::object& object, const char* key,
                                            const std::string& field, size_t most);

}  // namespace atl::egress
