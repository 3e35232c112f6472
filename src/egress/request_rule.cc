#include "egress/request_rule.h"

#include <algorithm>

namespace atl::egress {
namespace {

constexpr size_t kMaxMethodBytes = 32;

bool is_method(std::string_view text) {
  auto allowed = [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; };
  return !text.empty() && text.size() <= kMaxMethodBytes &&
         std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

Result<RequestRule> RequestRule::create(std::vector<std::string> methods,
                                        const std::vector<std::string>& paths) {
  if (methods.size() > kMaxMethods) return Error(Code::kInvalid, "more than 16 methods");
  if (paths.size() > kMaxPaths) return Error(Code::kInvalid, "more than 64 paths");
  for (const std::string& method : methods)
    if (!is_method(method))
      return Error(Code::kInvalid, "\"" + method + "\" is no method: capital letters and hyphens");
  RequestRule rule{.methods = std::move(methods)};
  for (const std::string& text : paths) {
    ATOLL_TRY(PathPattern pattern, PathPattern::parse(text));
    rule.paths.push_back(std::move(pattern));
  }
  return rule;
}

bool RequestRule::has_method(std::string_view method) const {
  return methods.empty() || std::find(methods.begin(), methods.end(), method) != methods.end();
}

bool RequestRule::has_path(std::string_view canonical) const {
  auto matches = [&](const PathPattern& pattern) { return pattern.matches(canonical); };
  return paths.empty() || std::any_of(paths.begin(), paths.end(), matches);
}

}  // namespace atl::egress
