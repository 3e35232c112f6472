// runtimes/python.py, compiled into this program.
#pragma once

#include <string_view>

namespace atl::sandbox {

std::string_view python_runtime();

}  // namespace atl::sandbox
