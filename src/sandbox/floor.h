// The wall that a sandbox shall have at least, and what a wall cannot do. What this host cannot
// give is refused: nothing degrades silently.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "isolate/monitor.h"
#include "store/sandbox_rows.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

// The walls of this host. The jail is everywhere; the others need the image of what runs them.
struct Offered {
  std::optional<Digest> sentry = {};   // gvisor
  std::optional<Digest> machine = {};  // microvm
  // What machines have, as far as was tried (wall_trials.h).
  isolate::Virtualization virtualization = isolate::Virtualization::kEmulated;
  // The same of gVisor; why it does not run here, if it was tried and did not.
  isolate::Platform platform = isolate::Platform::kSystrap;
  std::string sentry_failure = {};
};

// What became of the trial of machines on the host's processor (wall_trials.h).
struct HardwareFinding {
  Digest image;  // that was tried
  isolate::Virtualization virtualization;
  std::string reason;  // why they are emulated
};

// And of gVisor's sentry.
struct PlatformFinding {
  Digest image;  // that was tried
  std::optional<isolate::Platform> platform;
  std::string reason;  // why not by systrap, or not at all
};

struct WallFindings {
  // What gVisor has until it is known.
  isolate::Platform first_platform = isolate::Platform::kSystrap;
  std::optional<HardwareFinding> hardware;
  std::optional<PlatformFinding> platform;
};

// What a sandbox behind that wall is run by; nothing: the jail is all.
std::optional<isolate::Monitor> monitor_of(const Offered& offered, store::Isolation wall);

// Which of the walls that are strong enough.
enum class Preference : unsigned char { kWeakest, kStrongest };

// The weakest wall here that is not weaker than what is asked for and what the template asks for.
// kUnsupported with reason isolation_unavailable or persistence_unavailable.
Result<store::Isolation> choose_wall(const Offered& offered,
                                     const store::TemplateDefaults& defaults,
                                     std::optional<store::Isolation> asked = std::nullopt);

// The strongest wall here that the template's latency class allows and behind which a sandbox of
// this row can be what it says; never a weaker one than it has.
store::Isolation strongest_wall(const Offered& offered, const store::TemplateDefaults& defaults,
                                store::SandboxRow row);

// Whether a sandbox of this row can be what it says behind the wall that it has. kUnsupported with
// reason not_behind_this_wall and the field that it is about.
Result<void> check_wall(const store::SandboxRow& row);

// Whether the limits of a sandbox that exists can change. The same error.
Result<void> check_change(const store::SandboxRow& row);

}  // namespace atl::sandbox
