// A policy as a TOML file: what `atoll egress test` reads, and the ceiling that binds egress.
//   allow = ["pypi.org", "files.pythonhosted.org:443"]
//   [[rules]]
//   allow = "*.example.com"      # or deny = "…"
//   ports = [443]
//   protocol = "tls"
//   inspect = true
//   methods = ["GET"]
//   paths = ["/v1/**"]
//   budget = {bytes_out = 1000000}
//   [budget]                     # of the sandbox; not in a ceiling
//   connections = 100
//   [upstream]                   # a proxy that all goes through; not in a ceiling
//   proxy = "proxy.example.com:3128"
//   credentials = "PROXY_LOGIN"  # a secret
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "egress/policy.h"

namespace atl::egress {

inline constexpr size_t kMaxPolicyFileBytes = 256 * 1024;

// `file` is for messages only; they name the line.
Result<Policy> parse_policy_file(std::string_view text, const std::string& file);
std::string policy_file_text(const Policy& policy);

}  // namespace atl::egress
