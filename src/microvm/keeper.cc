#include "microvm/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <x86intrin.h>

#include <fmt/format.h>

#include "agent/birth.h"
#include "agent/launcher.h"
#include "agent/leaf.h"
#include "agent/probe.h"
#include "base/file.h"
#include "linux/unix_socket.h"
#include "microvm/initramfs.h"
#include "microvm/kept_program.h"
#include "microvm/machine.h"

namespace atl::microvm {
namespace {

constexpr uint32_t kProbeLeaf = 0;
constexpr uint32_t kFormatLeaf = 1;
constexpr uint32_t kMachineLeaf = 2;
constexpr size_t kMaxProgramBytes = 64 << 20;
constexpr const char* kModulesDirectory = "/usr/lib/modules";
constexpr const char* kSudo = "/run/atoll/bin/sudo";

int64_t steady_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// The rate of the processor's time stamps, from the time between two looks.
class TimeStampRate {
 public:
  TimeStampRate() : begin_ns_(steady_ns()), begin_(__rdtsc()) {}
  uint64_t khz() const {
    while (steady_ns() - begin_ns_ < kLeastNs) usleep(1000);
    auto passed = static_cast<uint64_t>(steady_ns() - begin_ns_);
    return (__rdtsc() - begin_) * 1'000'000 / passed;
  }

 private:
  static constexpr int64_t kLeastNs = 20'000'000;
  int64_t begin_ns_;
  uint64_t begin_;
};

// The only one there is.
Result<std::string> find_kernel_release() {
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(kModulesDirectory), closedir);
  if (!entries) return Error::system(std::string("read ") + kModulesDirectory);
  while (const dirent* entry = readdir(entries.get()))
    if (entry->d_name[0] != '.') return std::string(entry->d_name);
  return Error(Code::kNotFound, "there is no kernel", ENOENT);
}

std::string find_kernel(const std::string& release) {
  std::string plain = "/boot/vmlinux";
  return access(plain.c_str(), R_OK) == 0 ? plain : "/boot/vmlinuz-" + release;
}

std::string guest_birth(const agent::Birth& birth) {
  agent::BirthRecord record = {};
  record.version = agent::kBirthVersion;
  record.on_oom = birth.on_oom;
  record.has_sudo = 1;
  record.nonce = birth.nonce;
  record.guest = birth.guest;
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

Result<void> write_new_file(const char* path, unsigned mode, std::string_view bytes) {
  unlink(path);  // of a snapshot
  ATOLL_TRY(Fd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  return write_all(file.get(), bytes);
}

Result<void> write_initramfs(const agent::Birth& birth, const std::string& release) {
  // The same program is process 1 inside.
  ATOLL_TRY(std::string own, read_file("/proc/self/exe", kMaxProgramBytes));
  ATOLL_TRY(std::string sudo, read_file(kSudo, kMaxProgramBytes));
  Initramfs archive;
  archive.add_file("init", 0500, own);
  archive.add_file(kGuestSudo + 1, 0500, sudo);
  archive.add_file(kGuestBirth + 1, 0400, guest_birth(birth));
  ATOLL_TRY_VOID(add_modules(archive, std::string(kModulesDirectory) + "/" + release));
  return write_new_file(kInitramfsFile, 0444, std::move(archive).finish());
}

// Sparse: it takes of the layer what is written. Blocks are overwritten where they are, or old
// versions of them would count against the limit too; a file system that cannot do so says no.
Result<void> make_disk(KeptPrograms& programs, uint64_t bytes) {
  struct stat status;
  if (lstat(kDiskFile, &status) == 0) {  // of a snapshot
    bool fits = S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) == bytes;
    return fits ? Result<void>() : Error::from_errno("the disk has another size", EMEDIUMTYPE);
  }
  ATOLL_TRY(Fd disk, open_file(kDiskFile, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  int flags = FS_NOCOW_FL;
  (void)ioctl(disk.get(), FS_IOC_SETFLAGS, &flags);
  if (ftruncate(disk.get(), static_cast<off_t>(bytes)) != 0) return Error::system("size the disk");
  if (fchown(disk.get(), kKeptUser, kKeptUser) != 0) return Error::system("chown the disk");
  // No journal: it never outlives a crash of its machine.
  return programs.run(kFormatLeaf,
                      {"mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal,^resize_inode", "-m",
                       "0", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0", kDiskFile});
}

}  // namespace

Result<void> run_keeper() {
  TimeStampRate rate;
  ATOLL_TRY(agent::Birth birth, agent::take_birth());
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Error::system("ignore SIGPIPE");
  ATOLL_TRY(agent::Launcher launcher, agent::Launcher::create(std::move(birth.spawner)));
  // The warden looks at it while the machine is being built.
  agent::Leaf probe(birth.cgroup.get(), kProbeLeaf);
  ATOLL_TRY([[maybe_unused]] agent::Launched probing,
            agent::start_probe(launcher, probe, std::move(birth.probe)));
  ATOLL_TRY(std::string release, find_kernel_release());
  ATOLL_TRY_VOID(write_initramfs(birth, release));
  KeptPrograms programs(launcher, birth.cgroup.get());
  ATOLL_TRY_VOID(make_disk(programs, birth.guest.disk_bytes));
  ATOLL_TRY(auto port, linux::make_socket_pair(SOCK_STREAM));
  Machine machine = {.kernel = find_kernel(release),
                     .limits = birth.guest,
                     .has_toolbox = access(kToolboxFile, F_OK) == 0,
                     .tsc_khz = rate.khz()};
  ATOLL_TRY(agent::Launched started,
            programs.start(kMachineLeaf, machine_command(machine), port.theirs.get()));
  port.theirs.reset();
  KeptProgram machine_run(std::move(started), std::move(port.ours),
                          agent::Leaf(birth.cgroup.get(), kMachineLeaf));
  // It has read the archive, which takes room on the layer.
  return machine_run.keep(birth.listener.get(), [] { unlink(kInitramfsFile); });
}

}  // namespace atl::microvm
