#include "sandbox/port_tokens.h"

#include <charconv>

#include "base/file.h"
#include "store/sha256.h"

namespace atl::sandbox {
namespace {

constexpr size_t kKeyCharacters = 52;  // 260 random bits
constexpr size_t kMaxTokenBytes = 128;

int64_t seconds_of(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

// The decimal number before the next '-', which is taken away with it.
std::optional<int64_t> take_number(std::string_view& text) {
  size_t end = text.find('-');
  if (end == text.npos) return std::nullopt;
  int64_t number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + end, number);
  if (error != std::errc() || rest != text.data() + end) return std::nullopt;
  text.remove_prefix(end + 1);
  return number;
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

Result<PortTokens> PortTokens::open(const std::string& path) {
  auto key = read_file(path);
  if (key && key->size() >= kKeyCharacters) return PortTokens(std::move(*key));
  if (key) return Error(Code::kCorrupt, path + " is cut short; remove it and restart atolld");
  if (key.error().system_errno() != ENOENT) return std::move(key).error();
  std::string drawn = random_text(kKeyCharacters);
  ATOLL_TRY_VOID(replace_file(path, drawn, 0600));
  return PortTokens(std::move(drawn));
}

std::string PortTokens::signature_of(const PortGrant& grant, int64_t expires_at) const {
  std::string claim = "port " + std::to_string(grant.tenant.number()) + " " +
                      grant.sandbox.string() + " " + std::to_string(grant.port) + " " +
                      std::to_string(expires_at);
  return store::hmac_sha256(key_, claim).string();
}

std::string PortTokens::access_token(SandboxId sandbox) const {
  return store::hmac_sha256(key_, "access " + sandbox.string()).string();
}

std::string PortTokens::traffic_token(SandboxId sandbox) const {
  return store::hmac_sha256(key_, "traffic " + sandbox.string()).string();
}

bool PortTokens::is_access_token(std::string_view text, SandboxId sandbox) const {
  std::string right = access_token(sandbox);
  return store::constant_time_equal(bytes_of(text), bytes_of(right));
}

bool PortTokens::is_traffic_token(std::string_view text, SandboxId sandbox) const {
  std::string right = traffic_token(sandbox);
  return store::constant_time_equal(bytes_of(text), bytes_of(right));
}

std::string PortTokens::volume_token(VolumeId volume) const {
  return store::hmac_sha256(key_, "volume " + volume.string()).string();
}

bool PortTokens::is_volume_token(std::string_view text, VolumeId volume) const {
  std::string right = volume_token(volume);
  return store::constant_time_equal(bytes_of(text), bytes_of(right));
}

std::string PortTokens::sign(const PortGrant& grant, WallTime expires) const {
  int64_t expires_at = seconds_of(expires);
  return std::to_string(grant.tenant.number()) + "-" + std::to_string(expires_at) + "-" +
         signature_of(grant, expires_at);
}

std::optional<store::TenantId> PortTokens::check(std::string_view token, SandboxId sandbox,
                                                 uint16_t port, WallTime now) const {
  if (token.size() > kMaxTokenBytes) return std::nullopt;
  auto number = take_number(token);
  auto expires_at = take_number(token);
  auto tenant = store::TenantId::from_number(number.value_or(0));
  if (!tenant || !expires_at) return std::nullopt;
  std::string signature = signature_of({*tenant, sandbox, port}, *expires_at);
  if (!store::constant_time_equal(bytes_of(signature), bytes_of(token))) return std::nullopt;
  if (*expires_at <= seconds_of(now)) return std::nullopt;
  return tenant;
}

}  // namespace atl::sandbox
