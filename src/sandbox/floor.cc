#include "sandbox/floor.h"

#include <algorithm>
#include <string>

namespace atl::sandbox {
namespace {

using store::Isolation;

constexpr std::string_view kNothingAllowed = "{}";

bool is_machine(const store::SandboxRow& row) { return row.isolation == "microvm"; }

Error refused(const std::string& what, std::string_view field) {
  return Error(Code::kUnsupported, "a microvm " + what)
      .with_reason("not_behind_this_wall")
      .with_field(field);
}

}  // namespace

Result<Isolation> choose_wall(const Offered& offered, const store::TemplateDefaults& defaults,
                              std::optional<Isolation> asked) {
  Isolation wanted = std::max(defaults.isolation, asked.value_or(Isolation::kJail));
  Isolation strongest = offered.monitor ? Isolation::kMicrovm : Isolation::kJail;
  if (wanted > strongest) {
    std::string who = wanted > asked.value_or(Isolation::kJail) ? "the template" : "the request";
    return Error(Code::kUnsupported, who + " asks for " + std::string(isolation_name(wanted)) +
                                         ", and this host offers jail: the image of the template "
                                         "microvm, which runs machines, is not built")
        .with_reason("isolation_unavailable")
        .with_field("isolation");
  }
  if (defaults.persistence == store::Persistence::kCheckpoint)
    return Error(Code::kUnsupported,
                 "the template asks for memory to be kept, which this host cannot")
        .with_reason("persistence_unavailable")
        .with_field("template");
  return wanted == Isolation::kJail ? Isolation::kJail : strongest;
}

Result<void> check_wall(const store::SandboxRow& row) {
  if (!is_machine(row)) return {};
  if (row.network != kNothingAllowed) return refused("has no way out yet", "network");
  if (!row.volumes.empty()) return refused("cannot have volumes yet", "volumes");
  if (row.persistence != "ephemeral") return refused("cannot be kept yet", "persistence");
  if (row.snapshot) return refused("cannot begin with the files of a snapshot yet", "snapshot");
  if (row.checkpoint != "none") return refused("cannot be kept as a snapshot yet", "checkpoint");
  return {};
}

Result<void> check_deed(const store::SandboxRow& row, Deed deed) {
  if (!is_machine(row)) return {};
  if (deed == Deed::kChangeLimits) return refused("has the limits that it was made with", "limits");
  return refused("cannot be kept as a snapshot yet", "");
}

}  // namespace atl::sandbox
