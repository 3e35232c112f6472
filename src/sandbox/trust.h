// What makes programs in a sandbox whose connections are inspected believe the certificates that
// egress shows them.
#pragma once

#include <memory>
#include <string>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

// The variables of every program in a sandbox: its own, and beneath them those that its network
// needs, placeholders of secrets among them (JSON object of strings).
std::string environment_of(const store::SandboxRow& row);

// Where programs look for the authorities that they trust; both are written by install_trust().
inline constexpr char kTrustFile[] = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr char kAuthorityFile[] = "/usr/local/share/ca-certificates/atoll.crt";

// Makes a running sandbox whose policy inspects trust the authority that egress signs with. Nothing
// to do for any other.
Task<Result<void>> install_trust(Services& services, std::shared_ptr<Sandbox> sandbox);

}  // namespace atl::sandbox
