#include "api/v1/file_request.h"

#include <algorithm>

#include "api/query.h"
#include "api/v1/sandboxes.h"
#include "sandbox/environment.h"

namespace atl::api::v1 {

namespace {

constexpr uint32_t kMaxMode = 01777;  // setuid and setgid have no effect in a sandbox

Result<std::string> parse_user(const http::Request& request) {
  if (!has_word(request.query, "user")) return std::string("user");
  std::string user = http::query_parameter(request.query, "user").value_or("");
  auto is_printable = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '/'; };
  bool sound = !user.empty() && user.size() <= agent::kMaxUserBytes &&
               std::all_of(user.begin(), user.end(), is_printable);
  if (!sound) return invalid_parameter("user", "must be a name, a uid or uid:gid");
  return user;
}

Error malformed_path() {
  return Error(Code::kInvalid, "the path has a malformed escape or a NUL")
      .with_reason("invalid_path");
}

}  // namespace

bool has_word(std::string_view query, std::string_view word) {
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    if (pair.substr(0, pair.find('=')) == word) return true;
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
  }
  return false;
}

Result<std::string> clean_path(std::string path) {
  if (path.size() > 1 && path.ends_with('/')) path.pop_back();
  ATOLL_TRY_VOID(sandbox::check_path(path));
  return path;
}

Result<sandbox::Files> files_of(const Call& call, sandbox::Sandboxes& sandboxes) {
  ATOLL_TRY(std::shared_ptr<sandbox::Sandbox> found, named_sandbox(call, sandboxes));
  ATOLL_TRY(std::string user, parse_user(call.exchange.request()));
  return sandbox::Files(std::move(found), std::move(user));
}

Result<FileTarget> file_target(const Call& call, sandbox::Sandboxes& sandboxes) {
  ATOLL_TRY(sandbox::Files files, files_of(call, sandboxes));
  auto decoded = http::percent_decode_bytes(call.parameters.at(1));
  if (!decoded) return malformed_path();
  ATOLL_TRY(std::string path, clean_path("/" + *decoded));
  return FileTarget{std::move(files), std::move(path)};
}

Result<std::string> path_parameter(const http::Request& request) {
  std::string_view query = request.query;
  std::optional<std::string> found;
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (!pair.starts_with("path=")) continue;
    if (found) return invalid_parameter("path", "is given twice");
    std::string spaced(pair.substr(5));
    std::replace(spaced.begin(), spaced.end(), '+', ' ');
    found = http::percent_decode_bytes(spaced);
    if (!found) return malformed_path();
  }
  if (!found) return std::string("/home/user");
  return clean_path(std::move(*found));
}

Result<uint32_t> parse_mode(std::string_view name, std::string_view text) {
  uint32_t mode = 0;
  bool octal = !text.empty() && text.size() <= 5 &&
               std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  for (char c : octal ? text : "") mode = mode * 8 + static_cast<uint32_t>(c - '0');
  if (!octal || mode > kMaxMode)
    return invalid_parameter(name, "must be octal permission bits such as 0644, at most 1777");
  return mode;
}

Result<uint32_t> mode_parameter(const http::Request& request) {
  if (!has_word(request.query, "mode")) return uint32_t{0};
  std::string text = http::query_parameter(request.query, "mode").value_or("");
  return parse_mode("mode", text);
}

}  // namespace atl::api::v1
