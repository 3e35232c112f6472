// What a sandbox may reach: from the request or its template to egress.
#pragma once

#include <optional>
#include <string>

#include "egress/policy.h"
#include "sandbox/sandbox.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// A policy that this version can enforce, as the text that is stored. kUnsupported with reason
// network_ranges_unavailable: it has rules about addresses.
Result<std::string> network_text(const egress::Policy& policy);

// The template's.
Result<std::string> template_network(const store::TemplateManifest& manifest);

// Tells egress. A sandbox without rules does not wait for an egress that is away, for then nothing
// leaves anyway.
Task<Result<void>> apply_network(Services& services, store::SandboxRow row);

}  // namespace atl::sandbox
