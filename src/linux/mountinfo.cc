#include "linux/mountinfo.h"

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr size_t kMaxMountinfoBytes = 16 * 1024 * 1024;

bool is_octal(char c) { return c >= '0' && c <= '7'; }

std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escaped = text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) &&
                   is_octal(text[i + 2]) && is_octal(text[i + 3]);
    if (!escaped) {
      out += text[i];
      continue;
    }
    int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
    out += static_cast<char>(value);
    i += 3;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// id parent major:minor root mount-point options [optional]... - type source super-options
Result<MountInfo> parse_line(std::string_view line) {
  std::vector<std::string_view> fields = split(line, ' ');
  size_t dash = 6;
  while (dash < fields.size() && fields[dash] != "-") ++dash;
  if (dash + 3 >= fields.size())
    return Error(Code::kCorrupt, "mountinfo: cannot read \"" + std::string(line) + "\"");
  return MountInfo{.root = unescape(fields[3]),
                   .mount_point = unescape(fields[4]),
                   .file_system = std::string(fields[dash + 1]),
                   .super_options = std::string(fields[dash + 3])};
}

}  // namespace

bool has_option(std::string_view comma_separated, std::string_view option) {
  for (std::string_view part : split(comma_separated, ','))
    if (part == option) return true;
  return false;
}

Result<std::vector<MountInfo>> parse_mountinfo(std::string_view text) {
  std::vector<MountInfo> mounts;
  for (std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    ATOLL_TRY(MountInfo mount, parse_line(line));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<std::vector<MountInfo>> read_mountinfo() {
  ATOLL_TRY(std::string text, read_file("/proc/self/mountinfo", kMaxMountinfoBytes));
  return parse_mountinfo(text);
}

}  // namespace atl::linux
