// The environment that an exec starts with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atl::sandbox {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A name that a shell could use: letters, digits and underscore, not starting with a digit.
bool is_variable_name(std::string_view name);

// Defaults, then the given lists in order; a later value replaces an earlier one. Thread-count
// variables follow the cpu limit, so that a library does not start one thread per core of the host.
// HOME, USER, LOGNAME and SHELL, if not given, are added by the agent: it knows the user.
std::vector<std::string> compose_environment(uint32_t cpu_millis,
                                             const std::vector<Variables>& given);

}  // namespace atl::sandbox
