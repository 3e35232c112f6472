// RoutePattern: which paths a route serves, "/v1/sandboxes/{id}", or with an end that takes the
// rest of the path: "…/files/{path...}". Fitting a path costs the same however many parts a
// stranger gives it: it is taken apart once for all routes, and not further than any of them goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atl::api {

// A path and its first parts, which are views of it.
class PathParts {
 public:
  static constexpr size_t kMost = 32;

  explicit PathParts(std::string_view path);
  size_t size() const { return parts_.size(); }
  std::string_view operator[](size_t i) const { return parts_[i]; }
  // From that part to the end of the path.
  std::string_view rest(size_t i) const;

 private:
  std::string_view path_;
  std::vector<std::string_view> parts_;
};

class RoutePattern {
 public:
  explicit RoutePattern(std::string_view text);
  // The parameters of a path, decoded, that of an end as received; nothing if it does not fit.
  std::optional<std::vector<std::string>> fit(const PathParts& path) const;

 private:
  bool has_literals_of(const PathParts& path) const;

  std::vector<std::string> parts_;  // empty: a parameter
  bool takes_rest_;
};

}  // namespace atl::api
