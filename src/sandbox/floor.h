// The wall that a sandbox shall have at least, and what a wall cannot do. What this host cannot
// give is refused: nothing degrades silently.
#pragma once

#include <optional>

#include "base/result.h"
#include "isolate/monitor.h"
#include "store/sandbox_rows.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// The walls of this host. The jail is everywhere; the others need the image of what runs them.
struct Offered {
  std::optional<Digest> sentry = {};   // gvisor
  std::optional<Digest> machine = {};  // microvm
};

// What a sandbox behind that wall is run by; nothing: the jail is all.
std::optional<isolate::Monitor> monitor_of(const Offered& offered, store::Isolation wall);

// The weakest wall here that is not weaker than what is asked for and what the template asks for.
// kUnsupported with reason isolation_unavailable or persistence_unavailable.
Result<store::Isolation> choose_wall(const Offered& offered,
                                     const store::TemplateDefaults& defaults,
                                     std::optional<store::Isolation> asked = std::nullopt);

// Whether a sandbox of this row can be what it says behind the wall that it has. kUnsupported with
// reason not_behind_this_wall and the field that it is about.
Result<void> check_wall(const store::SandboxRow& row);

// What is done to a sandbox that exists. The same error.
enum class Deed : unsigned char { kChangeLimits, kKeepFiles };
Result<void> check_deed(const store::SandboxRow& row, Deed deed);

}  // namespace atl::sandbox
