// What a sandbox may reach: from the request or its template to egress.
#pragma once

#include <optional>
#include <string>

#include "egress/policy.h"
#include "sandbox/sandbox.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// A policy as the text that is stored, with a placeholder for each of its secrets. kInvalid with
// reason invalid_network_rule: it speaks of more ranges of addresses than an isolate can have.
Result<std::string> network_text(const egress::Policy& policy);

// `after`, in which secrets that were there `before` keep their placeholders: programs know them.
std::string keep_placeholders(const std::string& before, const std::string& after);

// The template's.
Result<std::string> template_network(const store::TemplateManifest& manifest);

// What a sandbox may reach, with what its tenant's all have.
Result<std::string> full_network(const Services& services, const store::SandboxRow& row);

// Tells egress, which has it in force when this succeeds. A sandbox that was never allowed anything
// does not wait for an egress that is away to be told the same.
Task<Result<void>> apply_network(Services& services, store::SandboxRow row);

}  // namespace atl::sandbox
