#include "cli/doctor/resources.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/words.h"

namespace atl::cli {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// The warden takes half of what is free for layers and refuses less than 256 MiB.
constexpr uint64_t kLeastFreeDiskBytes = 512 * kMiB;
constexpr uint64_t kEnoughMemoryBytes = 1024 * kMiB;

std::string gibibytes(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1024 * kMiB));
}

// Nothing may be set up yet, so the state directory may not be there.
std::string nearest_existing(const std::string& path) {
  std::filesystem::path at = path;
  while (at.has_relative_path() && access(at.c_str(), F_OK) != 0) at = at.parent_path();
  return at.string();
}

Finding probe_disk(const Places& places) {
  std::string directory = nearest_existing(places.state);
  struct statvfs status = {};
  if (statvfs(directory.c_str(), &status) != 0) return judge_disk(directory, 0);
  // A pool that exists has its size already.
  if (access((places.state + "/pool.btrfs").c_str(), F_OK) == 0) {
    Finding finding = judge_disk(directory, kLeastFreeDiskBytes);
    finding.found = gibibytes(status.f_bavail * status.f_frsize) + " free beside the layer pool";
    return finding;
  }
  return judge_disk(directory, status.f_bavail * status.f_frsize);
}

Finding probe_memory() {
  Finding finding = {.name = "memory",
                     .kind = FindingClass::kAdvice,
                     .state = FindingState::kUnknown,
                     .found = "/proc/meminfo does not say",
                     .remedy = "mount -t proc proc /proc"};
  auto text = read_file("/proc/meminfo");
  auto bytes = text ? parse_meminfo(*text, "MemAvailable") : std::nullopt;
  if (!bytes) return finding;
  bool enough = *bytes >= kEnoughMemoryBytes;
  finding.state = enough ? FindingState::kOk : FindingState::kMissing;
  finding.found = gibibytes(*bytes) + " available";
  finding.remedy = enough ? "" : "free some: a sandbox may use 512 MiB and more";
  return finding;
}

Finding probe_kvm() {
  bool there = access("/dev/kvm", F_OK) == 0;
  return {.name = "kvm",
          .kind = FindingClass::kAdvice,
          .state = there ? FindingState::kOk : FindingState::kMissing,
          .found = there ? "present; whether it boots a machine is what a server tries"
                         : "no /dev/kvm, so machines are emulated",
          .remedy = there ? "" : "modprobe kvm_intel || modprobe kvm_amd"};
}

}  // namespace

std::optional<uint64_t> parse_meminfo(std::string_view text, std::string_view field) {
  for (std::string_view line : split(text, '\n')) {
    std::vector<std::string_view> words = words_of(line);
    if (words.size() != 3 || words[0] != std::string(field) + ":" || words[2] != "kB") continue;
    auto kibibytes = parse_number(words[1]);
    if (kibibytes) return *kibibytes * 1024;
  }
  return std::nullopt;
}

Finding judge_disk(const std::string& directory, uint64_t free_bytes) {
  bool enough = free_bytes >= kLeastFreeDiskBytes;
  return {.name = "disk",
          .kind = FindingClass::kRequired,
          .state = enough ? FindingState::kOk : FindingState::kMissing,
          .found = fmt::format("{} free in {}", gibibytes(free_bytes), directory),
          .remedy = enough ? ""
                           : fmt::format("free at least {} MiB in {}, or use --state-dir",
                                         kLeastFreeDiskBytes / kMiB, directory)};
}

Findings probe_resources(const Places& places) {
  return {probe_disk(places), probe_memory(), probe_kvm()};
}

}  // namespace atl::cli
