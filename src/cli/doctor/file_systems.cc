#include "cli/doctor/file_systems.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/trial.h"
#include "cli/doctor/words.h"
#include "linux/mounts.h"

namespace atl::cli {
namespace {

constexpr size_t kMaxModuleListBytes = 16 * 1024 * 1024;
constexpr KernelVersion kSimpleQuotas{6, 7};
constexpr KernelVersion kErofsFromFile{6, 12};
constexpr uint64_t kOwnMounts = CLONE_NEWUSER | CLONE_NEWNS;

Result<Fd> make_scratch() {
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  ATOLL_TRY(Fd scratch, linux::make_mount("tmpfs", {{"size", "64k"}, {"mode", "0700"}}, 0));
  // Over a directory that every host has and a trial does not need.
  ATOLL_TRY_VOID(linux::attach_mount_at(scratch.get(), AT_FDCWD, "/sys"));
  if (fchdir(scratch.get()) != 0) return Error::system("chdir to the scratch mount");
  return scratch;
}

// As warden/jail.cc does it, with a file copied up by a write.
Result<void> mount_overlay() {
  ATOLL_TRY([[maybe_unused]] Fd scratch, make_scratch());
  for (const char* name : {"lower", "upper", "work"})
    if (mkdir(name, 0700) != 0) return Error::system(std::string("mkdir ") + name);
  ATOLL_TRY([[maybe_unused]] Fd below, open_file("lower/file", O_WRONLY | O_CREAT, 0600));
  ATOLL_TRY(Fd root, linux::make_mount("overlay",
                                       {{"lowerdir", "lower"},
                                        {"upperdir", "upper"},
                                        {"workdir", "work"},
                                        {"userxattr", ""},
                                        {"volatile", ""}},
                                       0));
  ATOLL_TRY(Fd file, open_at(root.get(), "file", O_WRONLY));
  return write_all(file.get(), "copied up");
}

Result<void> mount_proc() {
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  ATOLL_TRY([[maybe_unused]] Fd proc, linux::make_mount("proc", {}, 0));
  return {};
}

Result<void> show_through_map(Result<Fd> mount, int user_namespace) {
  if (!mount) return std::move(mount).error();
  return linux::set_attributes(mount->get(), {.set = 0, .id_map_namespace = user_namespace});
}

// Not every file system can: the root may be an overlay, tmpfs learned it in 6.3. Those that hold
// images and layers (erofs, btrfs) can since 5.19, so one that works proves that we may.
Result<void> map_a_mount(int user_namespace) {
  Result<void> root = show_through_map(linux::clone_mount(AT_FDCWD, "/"), user_namespace);
  if (root) return root;
  return show_through_map(linux::make_mount("tmpfs", {{"size", "64k"}}, 0), user_namespace);
}

// The jail's own map, seen from outside: only who may mount the file system may do this. A detached
// mount goes with its descriptor.
Result<void> map_a_mount_for(pid_t child) {
  ATOLL_TRY(Fd user_namespace, open_file(fmt::format("/proc/{}/ns/user", child), O_RDONLY));
  return map_a_mount(user_namespace.get());
}

Finding probe_idmapped() {
  TrialReading reading = {.name = "mount.idmapped",
                          .kind = FindingClass::kRequired,
                          .found = "",
                          .remedy = kOtherKernel};
  Result<void> trial = run_trial({.namespaces = CLONE_NEWUSER, .beside = map_a_mount_for},
                                 [] { return Result<void>(); });
  if (trial) return judge(reading, trial);
  int number = trial.error().system_errno();
  if (number == EPERM) reading.remedy = "run Atoll with CAP_SYS_ADMIN on the host";
  if (number != EINVAL || kernel_version().value_or(KernelVersion{}) < kKernelFloor)
    return judge(reading, trial);
  reading.found = "by version (nothing at hand to try it on)";
  return judge(reading, {});
}

Finding probe_stored(const char* name, std::string_view file_system) {
  TrialReading reading = {
      .name = name, .kind = FindingClass::kRequired, .found = "", .remedy = kOtherKernel};
  auto loaded = read_file("/proc/filesystems");
  if (loaded && lists_file_system(*loaded, file_system)) return judge(reading, {});
  std::string modules = "/lib/modules/" + kernel_release();
  for (const char* list : {"/modules.dep", "/modules.builtin"}) {
    auto text = read_file(modules + list, kMaxModuleListBytes);
    if (text && lists_module(*text, file_system)) return judge(reading, {});
  }
  return judge(reading, Error(Code::kUnsupported, "the kernel has no such file system"));
}

Finding probe_loop_control() {
  TrialReading reading = {.name = "file_system.loop_control",
                          .kind = FindingClass::kRequired,
                          .found = "",
                          .remedy = "modprobe loop"};
  auto control = open_file("/dev/loop-control", O_RDWR);
  if (control) return judge(reading, {});
  return judge(reading, control.error());
}

Finding judge_version(const TrialReading& reading, bool there) {
  if (there) return judge(reading, {});
  return judge(reading, Error(Code::kUnsupported, "not in this version"));
}

}  // namespace

bool lists_file_system(std::string_view text, std::string_view name) {
  return has_word(text, name);
}

bool lists_module(std::string_view text, std::string_view name) {
  for (std::string_view line : split(text, '\n')) {
    std::string_view path = line.substr(0, line.find(':'));
    std::string_view file = path.substr(path.rfind('/') + 1);
    if (file.substr(0, file.find(".ko")) == name) return true;
  }
  return false;
}

Findings judge_by_version(KernelVersion version) {
  return {
      judge_version({.name = "file_system.simple_quotas",
                     .kind = FindingClass::kExtra,
                     .found = "by version (6.7 and later)",
                     .remedy = "boot a kernel of 6.7 or later; until then slow quotas are used"},
                    version >= kSimpleQuotas),
      judge_version({.name = "file_system.erofs_from_file",
                     .kind = FindingClass::kExtra,
                     .found = "by version (6.12 and later)",
                     .remedy = "boot a kernel of 6.12 or later; until then loop devices are used"},
                    version >= kErofsFromFile)};
}

Findings probe_file_systems() {
  Findings findings = {
      judge({.name = "mount.overlay",
             .kind = FindingClass::kRequired,
             .found = "",
             .remedy = "modprobe overlay"},
            run_trial({.namespaces = kOwnMounts}, mount_overlay)),
      judge({.name = "mount.proc",
             .kind = FindingClass::kRequired,
             .found = "",
             .remedy = "unmount what covers parts of /proc, or run Atoll directly on the host"},
            run_trial({.namespaces = kOwnMounts | CLONE_NEWPID}, mount_proc)),
      probe_idmapped(),
      probe_stored("file_system.btrfs", "btrfs"),
      probe_stored("file_system.erofs", "erofs"),
      probe_loop_control(),
  };
  for (Finding& finding : judge_by_version(kernel_version().value_or(KernelVersion{})))
    findings.push_back(std::move(finding));
  return findings;
}

}  // namespace atl::cli
