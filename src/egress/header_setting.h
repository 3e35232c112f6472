// HeaderSetting: a field that egress writes into the header of every request to a host, in the
// place of what the program wrote there. Its value may name secrets of the tenant, which the
// sandbox then never holds, not even as a placeholder:
//   {"host": "api.example.com", "name": "Authorization", "value": "Bearer ${secrets.API_KEY}"}
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/result.h"
#include "egress/host_name.h"

namespace atl::egress {

inline constexpr size_t kMaxHeaderSettings = 64;
inline constexpr size_t kMaxHeaderValueBytes = 4096;
inline constexpr size_t kMaxHeaderSettingsBytes = 32 * 1024;  // of a policy, names and values

struct HeaderSetting {
  HostName host;
  bool is_beneath = false;  // every name beneath the host, and not the host itself
  std::string name;
  std::string value;

  // Strict; the error says what is wrong. `host` may be "*.example.com".
  static Result<HeaderSetting> create(std::string_view host, std::string name, std::string value);

  bool is_for(const HostName& destination) const;
  std::string host_text() const;
  bool operator==(const HeaderSetting&) const = default;
};

// A piece of a value: text, or the name of a secret.
struct ValuePiece {
  std::string_view text;
  bool is_secret = false;
};
// What stands in `value` may be anything; a reference that is none is an error.
Result<std::vector<ValuePiece>> cut_value(std::string_view value);

// "set_headers" of a policy.
Result<std::vector<HeaderSetting>> read_header_settings(const boost::json::object& policy);
boost::json::array header_settings_json(const std::vector<HeaderSetting>& settings);
// The secrets that these name.
std::vector<std::string> secrets_of(std::span<const HeaderSetting> settings);

}  // namespace atl::egress
