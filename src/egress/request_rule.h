// RequestRule: which requests a rule that inspects speaks of, by method and path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "egress/request_path.h"

namespace atl::egress {

inline constexpr size_t kMaxMethods = 16;
inline constexpr size_t kMaxPaths = 64;

struct RequestRule {
  std::vector<std::string> methods = {};  // none: every one
  std::vector<PathPattern> paths = {};    // none: every one, in whatever form

  // The error says what is wrong.
  static Result<RequestRule> create(std::vector<std::string> methods,
                                    const std::vector<std::string>& paths);
  bool has_method(std::string_view method) const;
  bool has_path(std::string_view canonical) const;
  bool operator==(const RequestRule&) const = default;
};

}  // namespace atl::egress
