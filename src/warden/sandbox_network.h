// The network of a sandbox: a closed namespace, and the sockets in it that egress answers.
#pragma once

#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "egress/synthetic.h"
#include "linux/closed_network.h"
#include "linux/open_ranges.h"
#include "warden/host.h"

namespace atl::warden {

inline constexpr linux::ClosedNetwork kSandboxNetwork = {.own_v4 = egress::kInsideV4,
                                                         .range_v4 = egress::kSyntheticV4,
                                                         .range_v4_bits = egress::kSyntheticV4Bits,
                                                         .own_v6 = egress::kInsideV6,
                                                         .range_v6 = egress::kSyntheticV6,
                                                         .range_v6_bits = egress::kSyntheticV6Bits,
                                                         .connection_port = egress::kConnectionPort,
                                                         .dns_port = egress::kDnsPort,
                                                         .proxy_port = egress::kProxyPort};

// /etc/resolv.conf inside.
inline constexpr std::string_view kResolver =
    "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n";

// The sockets of an isolate made anew, for an egress that was started again. Those that it had must
// be closed. Leaves the caller, a process of its own, in the isolate's namespaces.
Result<linux::NetworkSockets> reopen_sockets(const Host& host, const SandboxId& id);

// Opens these ranges in an isolate's network, and closes all others. Leaves the caller there too.
Result<void> open_ranges(const Host& host, const SandboxId& id, const linux::OpenRanges& open);

}  // namespace atl::warden
