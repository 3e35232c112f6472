// What kPutSecret takes: {"name", "when"?, and the fields of a secret (secret.h)}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "egress/secret.h"

namespace atl::egress {

struct PutSecret {
  // kPresent: what is not given stays as it was.
  enum class When : unsigned char { kAlways, kAbsent, kPresent };
  std::string name;
  When when = When::kAlways;
  boost::json::object fields = {};
};

Result<PutSecret> parse_put_secret(std::string_view text);
std::string put_secret_text(const Secret& secret, PutSecret::When when);
// Another value for one that there is; without `metadata` it keeps its own.
std::string renew_secret_text(const std::string& name, const std::string& value,
                              const std::optional<std::map<std::string, std::string>>& metadata);

}  // namespace atl::egress
