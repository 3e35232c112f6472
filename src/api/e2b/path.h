// Paths as E2B's clients write them: absolute, or relative to the home of the user, with "~", "."
// and "..", which are taken out of the text before anything is asked inside.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::api::e2b {

std::string home_of(std::string_view user);
// Absolute and clean. An empty one is the home.
Result<std::string> resolve_path(std::string_view path, std::string_view user);

// Of a clean absolute path.
std::string_view name_of(std::string_view path);
std::string_view parent_of(std::string_view path);

}  // namespace atl::api::e2b
