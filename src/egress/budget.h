// Budget: how much of something may be used in the life of a sandbox, by one rule's destinations or
// by the sandbox as a whole. Plain data; what was used is counted by spending.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace atl::egress {

struct Budget {
  // 0: no bound.
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  uint64_t connections = 0;          // in all, not at a time
  uint64_t requests_per_second = 0;  // of HTTP that is looked at; else of connections

  bool is_bounded() const { return *this != Budget(); }
  bool operator==(const Budget&) const = default;
};

struct BudgetField {
  std::string_view name;
  uint64_t Budget::*value;
  uint64_t most;
};
inline constexpr uint64_t kMaxBudgetBytes = 1ull << 50;
inline constexpr std::array<BudgetField, 4> kBudgetFields = {{
    {"bytes_out", &Budget::bytes_out, kMaxBudgetBytes},
    {"bytes_in", &Budget::bytes_in, kMaxBudgetBytes},
    {"connections", &Budget::connections, 1'000'000'000},
    {"requests_per_second", &Budget::requests_per_second, 1'000'000},
}};

}  // namespace atl::egress
