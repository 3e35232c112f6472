// Bodies that E2B's clients send about sandboxes. Fields that are not known are let be, because
// every version of the clients has others; those that ask for what there is not are refused.
#pragma once

#include <string_view>

#include "sandbox/sandboxes.h"
#include "sandbox/tenants.h"

namespace atl::api::e2b {

// How long a sandbox lives when the caller does not say, which differs by generation of the route.
inline constexpr uint64_t kFirstTimeoutSeconds = 15;
inline constexpr uint64_t kTimeoutSeconds = 300;

// `ceiling` is what "the internet" may be at most.
Result<sandbox::CreateSandbox> parse_create(std::string_view body, uint64_t default_seconds,
                                            sandbox::E2bInternet ceiling);
// {"timeout": seconds}, in milliseconds; `default_seconds` if it may be missing.
Result<uint64_t> parse_timeout(std::string_view body, std::optional<uint64_t> default_seconds);
// What replaces the rules of the network: network_text().
Result<std::string> parse_network(std::string_view body, sandbox::E2bInternet ceiling);

// The id of a snapshot, as "<id>" or "<id>:<tag>".
std::optional<SnapshotId> parse_snapshot_id(std::string_view text);

// kUnsupported if the body asks that memory be given up.
Result<void> check_memory(std::string_view body);

struct Fork {
  uint32_t count = 1;
  uint64_t ttl_ms = 0;
};
Result<Fork> parse_fork(std::string_view body);

Error unsupported(std::string message);

}  // namespace atl::api::e2b
