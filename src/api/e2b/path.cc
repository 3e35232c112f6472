#include "api/e2b/path.h"

#include <vector>

#include "sandbox/file_call.h"

namespace atl::api::e2b {

namespace {

std::string clean(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string cleaned;
  for (std::string_view part : parts) cleaned.append("/").append(part);
  return cleaned.empty() ? "/" : cleaned;
}

}  // namespace

std::string home_of(std::string_view user) {
  return user == "root" ? "/root" : "/home/" + std::string(user);
}

Result<std::string> resolve_path(std::string_view path, std::string_view user) {
  std::string whole;
  if (path.starts_with('~')) {
    if (path.size() > 1 && path[1] != '/')
      return Error(Code::kInvalid, "the home of another user cannot be named by ~")
          .with_reason("invalid_path");
    whole = home_of(user) + std::string(path.substr(1));
  } else {
    whole = path.starts_with('/') ? std::string(path) : home_of(user) + "/" + std::string(path);
  }
  std::string cleaned = clean(whole);
  ATOLL_TRY_VOID(sandbox::check_path(cleaned));
  return cleaned;
}

std::string_view name_of(std::string_view path) {
  return path == "/" ? path : path.substr(path.rfind('/') + 1);
}

std::string_view parent_of(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : path.substr(0, slash);
}

}  // namespace atl::api::e2b
