// What interpreters of ours run, from runtimes/, compiled into this program.
#pragma once

#include <string_view>

namespace atl::sandbox {

// An interpreter that is started ahead and becomes a program or a context, and what it begins with,
// whose argument that is.
std::string_view python_runtime();
std::string_view python_start();
// Interpreters of contexts.
std::string_view python_context_runtime();
std::string_view node_runtime();
std::string_view bash_runtime();

}  // namespace atl::sandbox
