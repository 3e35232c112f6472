// The apt sources of this host, as one-line entries for one suite: packages come from where the
// host gets its own, through the same proxy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::builder {

// Entries for `suite`, its updates and its security updates, component main only. deb.debian.org
// when the host has none.
Result<std::vector<std::string>> host_apt_sources(const std::string& suite);

// Of one file of each format.
std::vector<std::string> deb822_entries(std::string_view text, const std::string& suite);
std::vector<std::string> one_line_entries(std::string_view text, const std::string& suite);

// Those lines of `apt-config dump` that say how mirrors are reached: proxies, certificates,
// retries.
std::vector<std::string> reach_options(std::string_view dump);

}  // namespace atl::builder
