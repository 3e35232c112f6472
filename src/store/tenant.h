// TenantId: who pays. A type of its own, so that no query can be written that takes a bare number
// from a request: it comes from a key's row or from a row that belongs to the tenant.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

namespace atl::store {

class TenantId {
 public:
  // Tenants count from 1, like the rows they name.
  static constexpr std::optional<TenantId> from_number(int64_t number) {
    if (number <= 0) return std::nullopt;
    return TenantId(number);
  }

  constexpr int64_t number() const { return number_; }
  constexpr auto operator<=>(const TenantId&) const = default;

 private:
  constexpr explicit TenantId(int64_t number) : number_(number) {}
  int64_t number_;
};

// The tenant of a host's own operator; the first migration makes its row.
inline constexpr TenantId kLocalTenant = *TenantId::from_number(1);

}  // namespace atl::store
