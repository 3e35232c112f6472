#include "cli/remote_path.h"

namespace atl::cli {
namespace {

bool is_id_or_name(const std::string& text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.find_first_not_of(kAllowed) == text.npos;
}

}  // namespace

std::optional<RemotePath> split_remote_path(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == text.npos || !is_id_or_name(text.substr(0, colon))) return std::nullopt;
  return RemotePath{text.substr(0, colon), absolute_inside(text.substr(colon + 1))};
}

Result<RemotePath> remote_path_of(const std::string& id, const std::string& path) {
  std::optional<RemotePath> split = split_remote_path(id);
  if (split && !path.empty())
    return Error(Code::kInvalid, "a path is given twice: " + id + " " + path);
  return split ? *split : RemotePath{id, absolute_inside(path)};
}

std::string absolute_inside(const std::string& path) {
  if (path.empty()) return kHome;
  return path.front() == '/' ? path : std::string(kHome) + "/" + path;
}

std::string base_name(const std::string& path) {
  size_t end = path.find_last_not_of('/');
  if (end == path.npos) return "";
  size_t slash = path.rfind('/', end);
  size_t begin = slash == path.npos ? 0 : slash + 1;
  return path.substr(begin, end + 1 - begin);
}

}  // namespace atl::cli
