#include "api/e2b/signature.h"

#include <charconv>

#include "api/base64.h"
#include "store/sha256.h"

namespace atl::api::e2b {

namespace {

std::string parameter(const http::Request& request, std::string_view name) {
  return http::query_parameter(request.query, name).value_or("");
}

}  // namespace

std::string signature_of(const SignedLink& link) {
  std::string text(link.path);
  for (std::string_view part : {link.operation, link.user, link.token})
    text.append(":").append(part);
  if (!link.expiration.empty()) text.append(":").append(link.expiration);
  Digest digest = store::sha256(text);
  const auto& bytes = digest.bytes();
  std::string encoded =
      to_base64(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  while (encoded.ends_with('=')) encoded.pop_back();
  return "v1_" + encoded;
}

bool has_signature(const http::Request& request) {
  return http::query_parameter(request.query, "signature").has_value();
}

bool is_signed(const http::Request& request, std::string_view token) {
  std::string path = parameter(request, "path"), user = parameter(request, "username");
  std::string expiration = parameter(request, "signature_expiration");
  std::string_view operation = request.method == http::Method::kPost ? "write" : "read";
  std::string right = signature_of({path, operation, user, token, expiration});
  std::string shown = parameter(request, "signature");
  auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const unsigned char*>(text.data()), text.size());
  };
  return store::constant_time_equal(bytes(shown), bytes(right));
}

bool has_expired(const http::Request& request, WallTime now) {
  std::string text = parameter(request, "signature_expiration");
  if (text.empty()) return false;
  int64_t seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return !whole || seconds <= to_milliseconds(now) / 1000;
}

}  // namespace atl::api::e2b
