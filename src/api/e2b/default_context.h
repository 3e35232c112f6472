// The context of a language that code runs in when its caller names none. It is made at its first
// use, and told from others by having no directory of its own.
#pragma once

#include <memory>
#include <string>

#include "http/exchange.h"
#include "sandbox/context_start.h"

namespace atl::api::e2b {

inline constexpr char kHome[] = "/home/user";

// Trimmed, in lower case; nothing if there is no such language.
std::optional<std::string> language_named(std::string_view name);

http::Task<Result<std::shared_ptr<sandbox::Context>>> make_context(
    std::shared_ptr<sandbox::Sandbox> sandbox, std::string language, std::string directory);
http::Task<Result<std::shared_ptr<sandbox::Context>>> default_context(
    std::shared_ptr<sandbox::Sandbox> sandbox, std::string language);

}  // namespace atl::api::e2b
