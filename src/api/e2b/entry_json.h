// Files as E2B's clients see them: what a symbolic link leads to stands for the link.
#pragma once

#include <boost/json/object.hpp>

#include "http/exchange.h"
#include "sandbox/files.h"

namespace atl::api::e2b {

// The attributes that clients set as the metadata of a file have this before their name.
inline constexpr std::string_view kMetadataPrefix = "user.e2b.";

// Of an entry that is no link, or that leads nowhere.
boost::json::object entry_json(const sandbox::FileEntry& entry);
// Of any; what it leads to is looked up.
http::Task<Result<boost::json::object>> resolved_json(sandbox::Files& files,
                                                      sandbox::FileEntry entry);

boost::json::object metadata_json(const sandbox::FileEntry& entry);

}  // namespace atl::api::e2b
