#include "sandbox/floor.h"

#include <algorithm>
#include <string>

namespace atl::sandbox {
namespace {

using store::Isolation;

constexpr std::string_view kFilesOnly = "files_only_after_ms";
constexpr std::string_view kUnderPressure = "files_only_under_pressure";

bool is_jail(const store::SandboxRow& row) { return row.isolation == "jail"; }

Error refused(const store::SandboxRow& row, const std::string& what, std::string_view field) {
  return Error(Code::kUnsupported, "a sandbox behind " + row.isolation + " " + what)
      .with_reason("not_behind_this_wall")
      .with_field(field);
}

bool is_offered(const Offered& offered, Isolation wall) {
  return wall == Isolation::kJail || monitor_of(offered, wall).has_value();
}

// What was looked for, wall by wall.
std::string found_of(const Offered& offered) {
  std::string text = "jail is here";
  for (Isolation wall : {Isolation::kGvisor, Isolation::kMicrovm}) {
    std::string name(isolation_name(wall));
    bool failed = wall == Isolation::kGvisor && !offered.sentry_failure.empty();
    if (is_offered(offered, wall))
      text += ", " + name + " is here";
    else if (failed)
      text += ", " + name + " was tried and does not run: " + offered.sentry_failure;
    else
      text += ", " + name + " needs the image of the template " + name + ", which is not built";
  }
  return text;
}

}  // namespace

std::optional<isolate::Monitor> monitor_of(const Offered& offered, Isolation wall) {
  using Kind = isolate::Monitor::Kind;
  if (wall == Isolation::kGvisor && offered.sentry)
    return isolate::Monitor{
        .image = *offered.sentry, .kind = Kind::kSentry, .platform = offered.platform};
  if (wall == Isolation::kMicrovm && offered.machine)
    return isolate::Monitor{*offered.machine, Kind::kMachine, offered.virtualization};
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
    return Error(Code::kUnsupported,
                 who + " asks for " + name +
                     ", and this host has no wall as strong: " + found_of(offered))
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

Isolation strongest_wall(const Offered& offered, const store::TemplateDefaults& defaults,
                         store::SandboxRow row) {
  Isolation least = store::parse_isolation(row.isolation).value_or(Isolation::kMicrovm);
  for (Isolation wall : {Isolation::kMicrovm, Isolation::kGvisor}) {
    if (wall <= least) break;
    if (wall > strongest_within(defaults.latency) || !is_offered(offered, wall)) continue;
    row.isolation = isolation_name(wall);
    if (check_wall(row)) return wall;
  }
  return least;
}

Result<void> check_wall(const store::SandboxRow& row) {
  if (is_jail(row)) return {};
  if (!row.volumes.empty()) return refused(row, "cannot have volumes yet", "volumes");
  if (row.persistence != "ephemeral") return refused(row, "cannot be kept yet", "persistence");
  if (row.files_only_after_ms != 0 || row.files_only_under_pressure) {
    std::string_view field = row.files_only_after_ms != 0 ? kFilesOnly : kUnderPressure;
    return refused(row, "cannot keep its files without its memory yet", field);
  }
  return {};
}

Result<void> check_change(const store::SandboxRow& row) {
  if (is_jail(row)) return {};
  return refused(row, "has the limits that it was made with", "limits");
}

}  // namespace atl::sandbox
