// PortTokens: what makes the URL of a port private. A token opens one port of one sandbox until it
// expires, for whoever has it, and nothing else; clients of E2B are handed two that last as long as
// their sandbox. Tokens are not stored: they are signed with a key that is drawn at the first
// start; deleting the key file and restarting ends all tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/volume_id.h"
#include "store/tenant.h"

namespace atl::sandbox {

struct PortGrant {
  store::TenantId tenant;
  SandboxId sandbox;
  uint16_t port;
};

class PortTokens {
 public:
  // Draws the key if there is no file.
  static Result<PortTokens> open(const std::string& path);

  // Opens all that E2B's clients do inside one sandbox, and all its ports.
  std::string access_token(SandboxId sandbox) const;
  // Opens its ports, and the interpreters among them.
  std::string traffic_token(SandboxId sandbox) const;
  bool is_access_token(std::string_view text, SandboxId sandbox) const;
  bool is_traffic_token(std::string_view text, SandboxId sandbox) const;
  // Opens the files of one volume, as long as there is that volume.
  std::string volume_token(VolumeId volume) const;
  bool is_volume_token(std::string_view text, VolumeId volume) const;

  std::string sign(const PortGrant& grant, WallTime expires) const;
  // The tenant in whose name the bearer may use that port of that sandbox; nothing if the token is
  // malformed, forged, for another port or sandbox, or has expired.
  std::optional<store::TenantId> check(std::string_view token, SandboxId sandbox, uint16_t port,
                                       WallTime now) const;

 private:
  explicit PortTokens(std::string key) : key_(std::move(key)) {}
  std::string signature_of(const PortGrant& grant, int64_t expires_at) const;
  std::string key_;
};

}  // namespace atl::sandbox
