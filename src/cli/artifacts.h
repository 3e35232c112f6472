// What a program left in /tmp/outputs.
#pragma once

#include <string>

#include <boost/json/array.hpp>

#include "base/result.h"
#include "cli/api.h"

namespace atl::cli {

// Writes each into `directory` under its own name; gives the list that the server gave.
Result<boost::json::array> download_artifacts(Api& api, const std::string& sandbox,
                                              const std::string& directory);

}  // namespace atl::cli
