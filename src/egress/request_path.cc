#include "egress/request_path.h"

#include <algorithm>
#include <optional>

namespace atl::egress {
namespace {

Error bad_path(const char* why) { return Error(Code::kDenied, why).with_reason("bad_path"); }

std::optional<unsigned> hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// The byte that an escape at the beginning of `text` stands for.
std::optional<unsigned char> escaped_byte(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  auto high = hex_value(text[1]), low = hex_value(text[2]);
  if (!high || !low) return std::nullopt;
  return static_cast<unsigned char>(*high << 4 | *low);
}

bool is_unreserved(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

void append_escape(std::string& out, unsigned char byte) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  out += '%';
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

// "..;x" too: some servers cut off what follows a semicolon before they look at the part.
bool is_dots(std::string_view part) {
  part = part.substr(0, part.find(';'));
  return part == "." || part == "..";
}

// What a server would see that undoes every escape once.
Result<void> check_parts(std::string_view decoded) {
  decoded.remove_prefix(1);
  while (true) {
    size_t slash = decoded.find('/');
    std::string_view part = decoded.substr(0, slash);
    if (is_dots(part)) return bad_path("the path has a dot segment");
    if (slash == decoded.npos) return {};
    if (part.empty()) return bad_path("the path has an empty segment");
    decoded.remove_prefix(slash + 1);
  }
}

}  // namespace

Result<std::string> canonical_path(std::string_view path) {
  if (!path.starts_with('/')) return bad_path("the path does not begin with a slash");
  std::string canonical, decoded;
  for (size_t i = 0; i < path.size(); ++i) {
    auto byte = static_cast<unsigned char>(path[i]);
    bool escaped = byte == '%';
    if (escaped) {
      auto meant = escaped_byte(path.substr(i));
      if (!meant) return bad_path("the path has half an escape");
      byte = *meant;
      i += 2;
    }
    if (byte < 0x20 || byte == 0x7f || byte == '\\')
      return bad_path("the path has a control character or a backslash");
    decoded += static_cast<char>(byte);
    if (escaped && !is_unreserved(byte))
      append_escape(canonical, byte);
    else
      canonical += static_cast<char>(byte);
  }
  for (size_t at = decoded.find('%'); at != decoded.npos; at = decoded.find('%', at + 1))
    if (escaped_byte(std::string_view(decoded).substr(at)))
      return bad_path("the path is escaped twice");
  ATOLL_TRY_VOID(check_parts(decoded));
  return canonical;
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  auto invalid = [&](const std::string& why) {
    return Error(Code::kInvalid, "\"" + std::string(text) + "\" is no pattern of paths: " + why);
  };
  if (text.find_first_of("?#\\") != text.npos)
    return invalid("it has a character that no path has");
  auto canonical = canonical_path(text);
  if (!canonical) return invalid(canonical.error().message());
  if (*canonical != text) return invalid("write it as " + *canonical);
  auto glob = Glob::parse(text);
  if (!glob) return invalid(glob.error().message());
  return PathPattern(std::string(text), std::move(*glob));
}

}  // namespace atl::egress
