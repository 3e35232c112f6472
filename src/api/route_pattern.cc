#include "api/route_pattern.h"

#include "base/check.h"
#include "http/message.h"

namespace atl::api {

namespace {

constexpr std::string_view kRestMark = "...}";

}  // namespace

PathParts::PathParts(std::string_view path) : path_(path) {
  if (path.empty() || path[0] != '/') return;
  path.remove_prefix(1);
  while (parts_.size() < kMost) {
    size_t slash = path.find('/');
    parts_.push_back(path.substr(0, slash));
    if (slash == path.npos) return;
    path.remove_prefix(slash + 1);
  }
}

std::string_view PathParts::rest(size_t i) const {
  if (i >= parts_.size()) return {};
  return path_.substr(static_cast<size_t>(parts_[i].data() - path_.data()));
}

RoutePattern::RoutePattern(std::string_view text) : takes_rest_(text.ends_with(kRestMark)) {
  PathParts parts(text);
  ATOLL_CHECK(parts.size() > 0 && parts.size() < PathParts::kMost);
  for (size_t i = 0; i < parts.size(); ++i)
    parts_.emplace_back(parts[i].starts_with('{') ? "" : parts[i]);
  if (takes_rest_) parts_.pop_back();
}

bool RoutePattern::has_literals_of(const PathParts& path) const {
  for (size_t i = 0; i < parts_.size(); ++i)
    if (!parts_[i].empty() && parts_[i] != path[i]) return false;
  return true;
}

std::optional<std::vector<std::string>> RoutePattern::fit(const PathParts& path) const {
  if (takes_rest_ ? path.size() < parts_.size() : path.size() != parts_.size()) return std::nullopt;
  if (!has_literals_of(path)) return std::nullopt;
  std::vector<std::string> parameters;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].empty()) continue;
    auto decoded = http::percent_decode(path[i]);
    if (!decoded || decoded->empty()) return std::nullopt;
    parameters.push_back(std::move(*decoded));
  }
  // As it came: what takes it decides what a malformed or escaped part means.
  if (takes_rest_) parameters.emplace_back(path.rest(parts_.size()));
  return parameters;
}

}  // namespace atl::api
