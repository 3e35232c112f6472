// What `atoll template init` writes.
#pragma once

#include <string>

namespace atl::cli {

std::string example_template(const std::string& name);

}  // namespace atl::cli
