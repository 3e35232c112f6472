#include "cli/doctor/programs.h"

#include <unistd.h>

#include <fmt/format.h>

namespace atl::cli {
namespace {

struct Program {
  const char* name;
  FindingClass kind;
  const char* package;
  const char* purpose;
};

constexpr Program kPrograms[] = {
    {"mkfs.btrfs", FindingClass::kRequired, "btrfs-progs", "makes the layer pool"},
    {"mkfs.erofs", FindingClass::kExtra, "erofs-utils", "builds images"},
    {"mmdebstrap", FindingClass::kExtra, "mmdebstrap", "builds images"},
};

// Where the warden looks, whatever PATH says; what it does not need itself may also be the
// administrator's own.
bool is_installed(const Program& program) {
  for (std::string directory : {"/usr/sbin", "/sbin", "/usr/bin", "/usr/local/bin"}) {
    if (program.kind == FindingClass::kRequired && directory == "/usr/local/bin") continue;
    if (access((directory + "/" + program.name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

Findings probe_programs() {
  Findings findings;
  for (const Program& program : kPrograms) {
    bool there = is_installed(program);
    findings.push_back({.name = fmt::format("program.{}", program.name),
                        .kind = program.kind,
                        .state = there ? FindingState::kOk : FindingState::kMissing,
                        .found = there ? "" : fmt::format("not installed ({})", program.purpose),
                        .remedy = there ? "" : fmt::format("apt-get install {}", program.package)});
  }
  return findings;
}

}  // namespace atl::cli
