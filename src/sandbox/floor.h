// The wall that a sandbox shall have at least. What this host cannot give is refused: nothing
// degrades silently.
#pragma once

#include <optional>

#include "base/result.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// The stronger of what is asked for and what the template asks for can be had. kUnsupported with
// reason isolation_unavailable or persistence_unavailable.
Result<void> check_floor(const store::TemplateDefaults& defaults,
                         std::optional<store::Isolation> asked = std::nullopt);

}  // namespace atl::sandbox
