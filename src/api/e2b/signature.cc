#include "api/e2b/signature.h"

#include <charconv>

#include "api/base64.h"

namespace atl::api::e2b {

namespace {

constexpr std::string_view kExpiration = "signature_expiration";

std::string parameter(const http::Request& request, std::string_view name) {
  return http::query_parameter(request.query, name).value_or("");
}

store::Sha256 hash_before_token(const FileLink& link) {
  store::Sha256 hash;
  hash.update(link.path + ":" + std::string(link.operation) + ":" + link.user + ":");
  return hash;
}

std::string finish(store::Sha256 hash, const FileLink& link, std::string_view token) {
  hash.update(token);
  if (!link.expiration.empty()) hash.update(":" + link.expiration);
  Digest digest = hash.finish();
  const auto& bytes = digest.bytes();
  std::string encoded =
      to_base64(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  while (encoded.ends_with('=')) encoded.pop_back();
  return "v1_" + encoded;
}

bool has_expired(const FileLink& link, WallTime now) {
  const std::string& text = link.expiration;
  if (text.empty()) return false;
  int64_t seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return !whole || seconds <= to_milliseconds(now) / 1000;
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

std::optional<FileLink> parse_link(const http::Request& request) {
  auto signature = http::query_parameter(request.query, "signature");
  if (!signature) return std::nullopt;
  FileLink link;
  link.path = parameter(request, "path");
  link.operation = request.method == http::Method::kPost ? "write" : "read";
  link.user = parameter(request, "username");
  link.expiration = parameter(request, kExpiration);
  link.signature = std::move(*signature);
  return link;
}

Result<void> check_link(const FileLink& link, WallTime now) {
  if (link.path.size() > kMaxLinkPathBytes)
    return Error(Code::kInvalid,
                 "the path has more than " + std::to_string(kMaxLinkPathBytes) + " bytes")
        .with_reason("name_too_long");
  if (has_expired(link, now))
    return Error(Code::kDenied, "signature is already expired").with_reason("unauthenticated");
  return {};
}

std::string signature_of(const FileLink& link, std::string_view token) {
  return finish(hash_before_token(link), link, token);
}

LinkComparison::LinkComparison(const FileLink& link)
    : link_(link), before_token_(hash_before_token(link)) {}

bool LinkComparison::is_signed_with(std::string_view token) const {
  std::string right = finish(before_token_, link_, token);
  return store::constant_time_equal(bytes_of(link_.signature), bytes_of(right));
}

}  // namespace atl::api::e2b
