#include "microvm/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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
#include "agent/still_files.h"
#include "base/file.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"
#include "microvm/initramfs.h"
#include "microvm/kept_program.h"
#include "microvm/lent_memory.h"
#include "microvm/machine.h"
#include "microvm/monitor.h"
#include "microvm/rebirth.h"

namespace atl::microvm {
namespace {

constexpr uint32_t kProbeLeaf = 0;
constexpr uint32_t kFormatLeaf = 1;
constexpr uint32_t kMachineLeaf = 2;
constexpr int kPatienceMs = 60'000;
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

struct Started {
  agent::Launched qemu;
  Fd monitor, port;
};

// Where QEMU will connect to.
Result<Fd> listen_for_machine(int directory, const char* name) {
  unlinkat(directory, name, 0);  // of a snapshot
  ATOLL_TRY(Fd listener, linux::listen_at(directory, name, SOCK_STREAM, 1));
  if (fchownat(directory, name, kKeptUser, kKeptUser, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown a socket");
  return listener;
}

// Unless QEMU ends first.
Result<Fd> await_connection(int listener, const agent::Launched& qemu) {
  pollfd waiting[] = {{.fd = listener, .events = POLLIN, .revents = 0},
                      {.fd = qemu.pidfd.get(), .events = POLLIN, .revents = 0}};
  int count = poll(waiting, std::size(waiting), kPatienceMs);
  if (count > 0 && waiting[0].revents != 0) {
    Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    return socket ? Result<Fd>(std::move(socket)) : Error::system("accept");
  }
  if (count == 0) return Error::from_errno("await QEMU", ETIMEDOUT);
  auto said = read_all(qemu.stderr_pipe.get());
  return Error(Code::kUnavailable, "QEMU ended: " + (said ? *said : std::string()));
}

Result<Started> start_machine(KeptPrograms& programs, const Machine& machine, int memory) {
  ATOLL_TRY_VOID(make_directory(kSocketDirectory, 0755));
  ATOLL_TRY(Fd directory, open_file(kSocketDirectory, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd monitors, listen_for_machine(directory.get(), kMonitorSocket));
  ATOLL_TRY(Fd ports, listen_for_machine(directory.get(), kPortSocket));
  Started started;
  ATOLL_TRY(started.qemu, programs.start(kMachineLeaf, machine_command(machine), memory,
                                         agent::Becomes::kMachine));
  ATOLL_TRY(started.monitor, await_connection(monitors.get(), started.qemu));
  ATOLL_TRY(started.port, await_connection(ports.get(), started.qemu));
  for (const char* name : {kMonitorSocket, kPortSocket}) unlinkat(directory.get(), name, 0);
  return started;
}

Result<Fd> make_memory(uint64_t bytes) {
  Fd memory(memfd_create("machine", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    return Error::system("make the memory of a machine");
  return memory;
}

// Its memory is sealed once QEMU is gone: nobody that begins with it can change it for others.
Result<void> lay_down(KeptProgram& machine, Monitor& monitor, int memory,
                      const agent::Birth& birth) {
  const char* file = state_file(accelerator_of(birth.guest));
  ATOLL_TRY(Fd state, open_file(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  ATOLL_TRY_VOID(monitor.prepare(state.get()));
  ATOLL_TRY_VOID(monitor.save());
  ATOLL_TRY_VOID(machine.end());
  ATOLL_TRY_VOID(linux::seal_memory(memory));
  return lend_memory(birth.listener.get(), memory);
}

// What runs it, and who watches.
struct Room {
  const agent::Birth& birth;
  KeptPrograms programs;
};

Machine machine_of(const agent::Birth& birth) {
  return {.kernel = {},
          .limits = birth.guest,
          .has_toolbox = access(kToolboxFile, F_OK) == 0,
          .tsc_khz = 0};
}

// The monitor outlives it.
KeptProgram kept(Started& started, const agent::Birth& birth, Monitor& monitor) {
  KeptProgram program(std::move(started.qemu), std::move(started.port),
                      agent::Leaf(birth.cgroup.get(), kMachineLeaf));
  program.offer_standstill(
      {[&monitor] { return monitor.stop(); }, [&monitor] { return monitor.go_on(); }});
  return program;
}

LyingDown lying_down(const agent::Birth& birth) {
  bool lends = birth.guest.purpose == agent::GuestPurpose::kLender;
  return lends ? LyingDown::kObeyed : LyingDown::kRefused;
}

Result<void> keep_booted(Room room, const TimeStampRate& rate) {
  const agent::Birth& birth = room.birth;
  ATOLL_TRY(std::string release, find_kernel_release());
  ATOLL_TRY_VOID(write_initramfs(birth, release));
  ATOLL_TRY_VOID(make_disk(room.programs, birth.guest.disk_bytes));
  ATOLL_TRY(Fd memory, make_memory(machine_memory_bytes(birth.guest)));
  Machine machine = machine_of(birth);
  machine.kernel = find_kernel(release);
  if (accelerator_of(birth.guest) == Accelerator::kTcg) machine.tsc_khz = rate.khz();
  ATOLL_TRY(Started started, start_machine(room.programs, machine, memory.get()));
  ATOLL_TRY(Monitor monitor, Monitor::open(std::move(started.monitor)));
  KeptProgram program = kept(started, birth, monitor);
  // It has read the archive, which takes room on the layer.
  auto ready = [] { unlink(kInitramfsFile); };
  ATOLL_TRY_VOID(program.keep(birth.listener.get(), ready, lying_down(birth)));
  return lay_down(program, monitor, memory.get(), birth);
}

// The accelerator that did not lay it down would find another processor in it.
Result<void> refuse_others_state(Accelerator own) {
  bool kvm = own == Accelerator::kKvm;
  if (access(state_file(kvm ? Accelerator::kTcg : Accelerator::kKvm), F_OK) != 0) return {};
  return Error(Code::kUnsupported, "it was laid down with another accelerator");
}

Result<void> keep_restored(Room room, Fd state) {
  const agent::Birth& birth = room.birth;
  ATOLL_TRY(Lent lent, await_memory(birth.listener.get()));
  if (lent.bytes != machine_memory_bytes(birth.guest))
    return Error(Code::kCorrupt, "no memory of this machine");
  ATOLL_TRY_VOID(make_disk(room.programs, birth.guest.disk_bytes));
  Machine machine = machine_of(birth);
  machine.begins = Machine::Begins::kRestored;
  ATOLL_TRY(Started started, start_machine(room.programs, machine, lent.memory.get()));
  ATOLL_TRY(Monitor monitor, Monitor::open(std::move(started.monitor)));
  ATOLL_TRY_VOID(monitor.prepare(state.get()));
  ATOLL_TRY_VOID(await_begin(lent));
  ATOLL_TRY_VOID(monitor.restore());
  unlink(state_file(accelerator_of(birth.guest)));
  ATOLL_TRY(Rebirth rebirth, make_rebirth(birth.nonce));
  KeptProgram program = kept(started, birth, monitor);
  return program.keep_reborn(birth.listener.get(), rebirth, std::move(lent.socket));
}

}  // namespace

Result<void> run_keeper() {
  TimeStampRate rate;
  ATOLL_TRY(agent::Birth birth, agent::take_birth());
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Error::system("ignore SIGPIPE");
  ATOLL_TRY(agent::Launcher launcher, agent::Launcher::create(std::move(birth.spawner)));
  // The warden looks at it while the machine is being built.
  agent::Leaf probe(birth.cgroup.get(), kProbeLeaf);
  ATOLL_TRY(
      [[maybe_unused]] agent::Launched probing,
      agent::start_probe(launcher, probe, std::move(birth.probe), agent::Becomes::kMachineProbe));
  Room room = {.birth = birth, .programs = KeptPrograms(launcher, birth.cgroup.get())};
  Accelerator accelerator = accelerator_of(birth.guest);
  ATOLL_TRY_VOID(refuse_others_state(accelerator));
  auto state = open_file(state_file(accelerator), O_RDONLY | O_NOFOLLOW);
  if (state) return keep_restored(room, std::move(*state));
  return keep_booted(room, rate);
}

}  // namespace atl::microvm
