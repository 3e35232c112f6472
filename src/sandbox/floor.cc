#include "sandbox/floor.h"

#include <algorithm>
#include <string>

namespace atl::sandbox {
namespace {

using store::Isolation;

constexpr std::string_view kFilesOnly = "files_only_after_ms";
constexpr std::string_view kUnderPressure = "files_only_under_pressure";

bool is_jail(const store::SandboxRow& row) { return row.isolation == "jail"; }

// Whether snapshots of it can be had.
bool keeps_files(const store::SandboxRow& row) { return row.isolation != "gvisor"; }

Error refused(const store::SandboxRow& row, const std::string& what, std::string_view field) {
  return Error(Code::kUnsupported, "a sandbox behind " + row.isolation + " " + what)
      .with_reason("not_behind_this_wall")
      .with_field(field);
}

bool is_offered(const Offered& offered, Isolation wall) {
  return wall == Isolation::kJail || monitor_of(offered, wall).has_value();
}

std::string names_of(const Offered& offered) { return offered.sentry ? "jail and gvisor" : "jail"; }

}  // namespace

std::optional<isolate::Monitor> monitor_of(const Offered& offered, Isolation wall) {
  using Kind = isolate::Monitor::Kind;
  if (wall == Isolation::kGvisor && offered.sentry)
    return isolate::Monitor{*offered.sentry, Kind::kSentry};
  if (wall == Isolation::kMicrovm && offered.machine)
    return isolate::Monitor{*offered.machine, Kind::kMachine};
  return std::nullopt;
}

Result<Isolation> choose_wall(const Offered& offered, const store::TemplateDefaults& defaults,
                              std::optional<Isolation> asked) {
  Isolation wanted = std::max(defaults.isolation, asked.value_or(Isolation::kJail));
  Isolation chosen = wanted;
  if (!is_offered(offered, chosen)) chosen = Isolation::kMicrovm;
  if (!is_offered(offered, chosen)) {
    std::string who = wanted > asked.value_or(Isolation::kJail) ? "the template" : "the request";
    std::string name(isolation_name(wanted));
    return Error(Code::kUnsupported, who + " asks for " + name + ", and this host offers " +
                                         names_of(offered) + ": the image of the template " + name +
                                         ", which runs such sandboxes, is not built")
        .with_reason("isolation_unavailable")
        .with_field("isolation");
  }
  if (defaults.persistence == store::Persistence::kCheckpoint)
    return Error(Code::kUnsupported,
                 "the template asks for memory to be kept, which this host cannot")
        .with_reason("persistence_unavailable")
        .with_field("template");
  return chosen;
}

Result<void> check_wall(const store::SandboxRow& row) {
  if (is_jail(row)) return {};
  if (!row.volumes.empty()) return refused(row, "cannot have volumes yet", "volumes");
  if (row.persistence != "ephemeral") return refused(row, "cannot be kept yet", "persistence");
  if (row.snapshot && !keeps_files(row))
    return refused(row, "cannot begin with the files of a snapshot yet", "snapshot");
  if (row.files_only_after_ms != 0 || row.files_only_under_pressure) {
    std::string_view field = row.files_only_after_ms != 0 ? kFilesOnly : kUnderPressure;
    return refused(row, "cannot keep its files without its memory yet", field);
  }
  if (row.checkpoint != "none" && !keeps_files(row))
    return refused(row, "cannot be kept as a snapshot yet", "checkpoint");
  return {};
}

Result<void> check_deed(const store::SandboxRow& row, Deed deed) {
  if (is_jail(row)) return {};
  if (deed == Deed::kChangeLimits)
    return refused(row, "has the limits that it was made with", "limits");
  if (keeps_files(row)) return {};
  return refused(row, "cannot be kept as a snapshot yet", "");
}

}  // namespace atl::sandbox
