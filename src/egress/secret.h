// Secret: a value that only egress knows, and where it may go: which hosts, which paths, which
// header. As JSON it is what PUT /v1/secrets/{name} takes:
//   {"value": "sk-…", "hosts": ["api.example.com"], "paths": ["/v1/**"],
//    "header": {"name": "Authorization", "format": "Bearer {}"}, "metadata": {"team": "a"}}
// With an empty list of hosts no sandbox has a placeholder for it: only fields that a policy sets
// (header_setting.h) carry it, to the hosts that they name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "egress/host_name.h"
#include "egress/request_path.h"

namespace atl::egress {

inline constexpr size_t kMaxSecretValueBytes = 16 * 1024;
inline constexpr size_t kMaxSecretHosts = 16;
inline constexpr size_t kMaxSecretPaths = 16;
inline constexpr size_t kMaxSecretsOfTenant = 64;
// Without its value; all of a tenant's fit into one message of the control socket.
inline constexpr size_t kMaxSecretShownBytes = 2000;

// The one field that may carry it, and the text around it.
struct HeaderForm {
  std::string name;
  std::string before, after;
};

// Of the values that it has had; the store counts.
struct SecretHistory {
  uint32_t version = 1;
  int64_t created_at_ms = 0, updated_at_ms = 0;  // 0: not known, of secrets of an older Atoll
};

struct Secret {
  std::string name;
  std::string value;
  std::vector<HostName> hosts;
  std::vector<PathPattern> paths = {};    // none: every one
  std::optional<HeaderForm> header = {};  // none: every field
  std::map<std::string, std::string> metadata = {};
  SecretHistory history = {};

  bool is_for(const HostName& host) const;
  bool is_for_path(std::string_view path) const;
};

// Strict; an error names its field and never shows a value.
Result<Secret> parse_secret(std::string name, const boost::json::object& object);
// Everything but the value.
boost::json::object shown_secret(const Secret& secret);
// What parse_secret() takes.
boost::json::object whole_secret(const Secret& secret);

// As a file of the store has it, history included.
Result<Secret> parse_stored_secret(std::string name, boost::json::object object);
boost::json::object stored_secret(const Secret& secret);

}  // namespace atl::egress
