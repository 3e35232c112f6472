// The languages of contexts: what starts an interpreter of ours, and how it is spoken to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/context_rows.h"

namespace atl::sandbox {

// Names that a request may use: "python", "javascript", "typescript", "bash", and short forms.
std::optional<std::string> context_language(std::string_view name);

// The command that starts its interpreter.
std::vector<std::string> interpreter_of(std::string_view language);

// Variables, each ended by a zero byte, as rows keep them.
std::string joined_variables(const std::vector<std::string>& variables);
std::vector<std::string> split_variables(std::string_view joined);

// What it is told first, and for each run.
std::string start_message(std::string_view language, const std::vector<std::string>& environment);
std::string run_message(std::string_view language, const store::RunRow& run);

}  // namespace atl::sandbox
