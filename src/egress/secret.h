// Secret: a value that only egress knows, and where it may go: which hosts, which paths, which
// header. As JSON it is what PUT /v1/secrets/{name} takes:
//   {"value": "sk-…", "hosts": ["api.example.com"], "paths": ["/v1/**"],
//    "header": {"name": "Authorization", "format": "Bearer {}"}}
#pragma once

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

struct Secret {
  std::string name;
  std::string value;
  std::vector<HostName> hosts;
  std::vector<PathPattern> paths = {};    // none: every one
  std::optional<HeaderForm> header = {};  // none: every field

  bool is_for(const HostName& host) const;
  bool is_for_path(std::string_view path) const;
};

// Strict; an error names its field and never shows a value.
Result<Secret> parse_secret(std::string name, const boost::json::object& object);
// Everything but the value.
boost::json::object shown_secret(const Secret& secret);
boost::json::object whole_secret(const Secret& secret);

}  // namespace atl::egress
