// What the user asked for about keys and tenants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace atl::cli {

struct ShowKeyCommand {};
struct CreateKeyCommand {
  std::string tenant;  // empty: the tenant of this host
  std::string name;
  enum class Shape : unsigned char { kAtoll, kE2b } shape = Shape::kAtoll;
};
struct ListKeysCommand {};
struct RevokeKeyCommand {
  std::string id;
};
struct ListTenantsCommand {};
struct SetTenantCommand {
  std::string tenant;        // empty: the tenant of this host
  std::string e2b_internet;  // allow | deny; empty: as it is
  std::string upstream;      // name:port, or "none"; empty: as it is
  std::string upstream_secret;
  std::optional<uint64_t> sealed_bytes;
};

}  // namespace atl::cli
