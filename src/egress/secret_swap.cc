#include "egress/secret_swap.h"

#include <algorithm>
#include <optional>

#include <openssl/evp.h>

#include "http/message.h"

namespace atl::egress {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kBasic = "Basic ";

Error not_bound(const char* why) {
  return Error(Code::kDenied, why).with_reason("secret_not_bound");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool holds_any(std::string_view text, std::span<const HeldSecret> held) {
  return std::any_of(held.begin(), held.end(), [&](const HeldSecret& one) {
    return text.find(one.placeholder) != text.npos;
  });
}

// Exactly what encodes back to the same text; nothing otherwise.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size(), '\0');
  int count = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                              reinterpret_cast<const unsigned char*>(text.data()),
                              static_cast<int>(text.size()));
  if (count < 0) return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<size_t>(count) - padding);
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and a zero byte
  int count = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                              reinterpret_cast<const unsigned char*>(bytes.data()),
                              static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(count));
  return text;
}

Result<void> check_bound(const HeldSecret& one, const SwapPlace& place) {
  if (one.secret == nullptr) return not_bound("the secret is gone");
  if (!place.is_tls) return not_bound("the connection is not encrypted");
  if (place.host == nullptr || !one.secret->is_for(*place.host))
    return not_bound("the secret is not for this host");
  if (!one.secret->is_for_path(place.path)) return not_bound("the secret is not for this path");
  return {};
}

// Whether a field may carry the secret as its form says.
bool has_form(const HeaderForm& form, std::string_view name, std::string_view value,
              std::string_view placeholder) {
  return http::equal_ignoring_case(form.name, name) &&
         value == form.before + std::string(placeholder) + form.after;
}

Result<std::string> swap_value(std::string_view name, std::string_view value,
                               const SwapPlace& place, std::span<const HeldSecret> held) {
  std::string text(value);
  for (const HeldSecret& one : held) {
    // In what came: a secret's value is not looked into.
    if (value.find(one.placeholder) == value.npos) continue;
    ATOLL_TRY_VOID(check_bound(one, place));
    const auto& form = one.secret->header;
    if (form && !has_form(*form, name, value, one.placeholder))
      return not_bound("the secret is not for this header field");
    size_t at = text.find(one.placeholder);
    while (at != text.npos) {
      ATOLL_TRY_VOID(check_swapped_bytes(text.size() + one.secret->value.size()));
      text.replace(at, one.placeholder.size(), one.secret->value);
      at = text.find(one.placeholder, at + one.secret->value.size());
    }
  }
  return text;
}

// User and password of HTTP (RFC 7617) hide a placeholder in base 64.
Result<std::string> swap_field(std::string_view name, std::string_view value,
                               const SwapPlace& place, std::span<const HeldSecret> held) {
  if (holds_any(value, held)) return swap_value(name, value, place, held);
  bool is_basic = http::equal_ignoring_case(value.substr(0, kBasic.size()), kBasic);
  auto decoded = is_basic ? from_base64(trimmed(value.substr(kBasic.size()))) : std::nullopt;
  if (!decoded || !holds_any(*decoded, held)) return std::string(value);
  ATOLL_TRY(std::string swapped, swap_value(name, *decoded, place, held));
  return std::string(kBasic) + to_base64(swapped);
}

}  // namespace

Result<void> check_swapped_bytes(size_t bytes) {
  if (bytes <= kMaxSwappedHeadBytes) return {};
  return Error(Code::kDenied, "the head is too long with its secrets").with_reason("bad_http");
}

Result<std::string> swap_secrets(std::string_view head, const SwapPlace& place,
                                 std::span<const HeldSecret> held) {
  if (held.empty()) return std::string(head);
  size_t end = head.find(kLineEnd);
  if (holds_any(head.substr(0, end), held)) return not_bound("a secret belongs into the header");
  std::string swapped(head.substr(0, end));
  while (end != head.npos) {
    swapped += kLineEnd;
    size_t start = end + kLineEnd.size();
    end = head.find(kLineEnd, start);
    std::string_view line = head.substr(start, end - start);
    size_t colon = line.find(':');
    std::string_view name = line.substr(0, colon);
    if (holds_any(name, held)) return not_bound("a secret is no name of a field");
    if (colon == line.npos) {
      swapped += line;
      continue;
    }
    std::string_view value = trimmed(line.substr(colon + 1));
    ATOLL_TRY(std::string text, swap_field(name, value, place, held));
    if (text == value)
      swapped += line;
    else
      swapped.append(name).append(": ").append(text);
    ATOLL_TRY_VOID(check_swapped_bytes(swapped.size()));
  }
  return swapped;
}

}  // namespace atl::egress
