// Secrets and variables as text, for those who hand them on and read no JSON themselves.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "egress/secret.h"

namespace atl::egress {

// Of a line of kListSecrets.
Result<std::string> name_of_shown(const std::string& line);

// `own` (a JSON object of strings) with those of `more` that it does not have itself.
std::string add_variables(const std::string& own,
                          const std::vector<std::pair<std::string, std::string>>& more);

}  // namespace atl::egress
