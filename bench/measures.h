// The measurements, by the name that --measure gives.
#pragma once

#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"
#include "options.h"

namespace atl::bench {

// The rows of this measurement. Every sandbox it made is deleted again, also when it fails.
Result<boost::json::array> measure(std::string_view name, const Options& options);

}  // namespace atl::bench
