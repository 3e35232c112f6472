// How people name a path inside a sandbox: ID:PATH, or an id and a path.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/commands.h"

namespace atl::cli {

inline constexpr const char* kHome = "/home/user";

// Nothing for what is no ID:PATH. A local name with a colon is written ./a:b.
std::optional<RemotePath> split_remote_path(const std::string& text);

// From one word or two; an empty path is kHome, a relative one is beneath it.
Result<RemotePath> remote_path_of(const std::string& id, const std::string& path);

std::string absolute_inside(const std::string& path);

// The last name of a path: "c" of "/a/b/c/".
std::string base_name(const std::string& path);

}  // namespace atl::cli
