#include "gvisor/guest.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "agent/birth_record.h"
#include "agent/rest_note.h"
#include "base/file.h"
#include "egress/synthetic.h"
#include "gvisor/redirect.h"
#include "gvisor/sentry.h"
#include "linux/confinement.h"
#include "linux/descriptors.h"
#include "linux/kernel_gaps.h"
#include "linux/resource_limits.h"
#include "linux/sandbox_root.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"
#include "microvm/inlets.h"
#include "microvm/relay.h"

namespace atl::gvisor {
namespace {

constexpr size_t kMaxProgramBytes = 64 << 20;
constexpr rlim_t kAgentOpenFiles = 4096;
constexpr const char* kListenerName = "agent";
constexpr const char* kRoot = "/tmp/root";
// As the jail's, where egress answers there.
constexpr std::string_view kResolver = "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n";
constexpr unsigned long kNoSuidNoDev = MS_NOSUID | MS_NODEV;

struct Kept {
  agent::BirthRecord birth;
  std::string sudo;
};

Result<Kept> take_files() {
  Kept kept;
  ATOLL_TRY(std::string record, read_all(kGuestBirthFd));
  if (record.size() != sizeof kept.birth) return Error(Code::kCorrupt, "bad birth record");
  std::memcpy(&kept.birth, record.data(), sizeof kept.birth);
  ATOLL_TRY(kept.sudo, read_all(kGuestSudoFd, kMaxProgramBytes));
  return kept;
}

Result<void> mount_at(const char* type, const std::string& target, unsigned long flags,
                      const char* options = nullptr) {
  if (mount(type, target.c_str(), type, flags, options) != 0)
    return Error::system("mount " + target);
  return {};
}

Result<void> make_directories(std::initializer_list<const char*> paths) {
  for (const char* path : paths) ATOLL_TRY_VOID(make_directory(path, 0755));
  return {};
}

// The directory in which the leaves of execs are.
Result<Fd> make_groups() {
  ATOLL_TRY_VOID(make_directories({"/run/groups"}));
  unsigned long flags = kNoSuidNoDev | MS_NOEXEC;
  // Of all controllers only that of processes is of use: it counts, lists and limits them.
  ATOLL_TRY_VOID(mount_at("cgroup", "/run/groups", flags, "pids"));
  ATOLL_TRY_VOID(make_directories({"/run/groups/run"}));
  return open_file("/run/groups/run", O_RDONLY | O_DIRECTORY);
}

// As linux/masks.h has them: below the image, which may have its own of these names.
Result<void> make_links() {
  ATOLL_TRY_VOID(make_directories(
      {"/run/links", "/run/links/usr", "/run/links/usr/local", "/run/links/usr/local/bin"}));
  if (symlink("/run/atoll/bin/sudo", "/run/links/usr/local/bin/sudo") != 0)
    return Error::system("link sudo");
  return {};
}

// Over the image's own.
Result<void> write_resolver() {
  ATOLL_TRY_VOID(make_directories({"/tmp/upper/etc"}));
  ATOLL_TRY(Fd file, open_file("/tmp/upper/etc/resolv.conf", O_WRONLY | O_CREAT | O_EXCL, 0644));
  return write_all(file.get(), kResolver);
}

Result<void> mount_root() {
  ATOLL_TRY_VOID(make_directories({"/tmp/upper", "/tmp/work", kRoot}));
  ATOLL_TRY_VOID(write_resolver());
  return mount_at("overlay", kRoot, kNoSuidNoDev,
                  "lowerdir=/:/run/links,upperdir=/tmp/upper,workdir=/tmp/work");
}

Result<void> mount_devices() {
  std::string devices = std::string(kRoot) + "/dev";
  if (mount("/dev", devices.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return Error::system("mount " + devices);
  ATOLL_TRY_VOID(make_directory(devices + "/shm", 01777));
  return mount_at("tmpfs", devices + "/shm", kNoSuidNoDev, "size=67108864,mode=1777");
}

// Gives /run/atoll.
Result<Fd> mount_run(const std::string& sudo) {
  std::string run = std::string(kRoot) + "/run";
  ATOLL_TRY_VOID(mount_at("tmpfs", run, kNoSuidNoDev, "size=16777216,mode=0755"));
  ATOLL_TRY_VOID(make_directory(run + "/atoll", 0755));
  ATOLL_TRY_VOID(make_directory(run + "/atoll/bin", 0755));
  ATOLL_TRY(Fd file, open_file(run + "/atoll/bin/sudo", O_WRONLY | O_CREAT | O_EXCL, 0555));
  ATOLL_TRY_VOID(write_all(file.get(), sudo));
  return open_file(run + "/atoll", O_RDONLY | O_DIRECTORY);
}

Result<Fd> build_root(const std::string& sudo) {
  ATOLL_TRY_VOID(mount_root());
  ATOLL_TRY_VOID(mount_devices());
  std::string root = kRoot;
  ATOLL_TRY_VOID(mount_at("proc", root + "/proc", kNoSuidNoDev | MS_NOEXEC));
  ATOLL_TRY_VOID(mount_at("tmpfs", root + "/sys", kNoSuidNoDev | MS_RDONLY, "mode=0555"));
  return mount_run(sudo);
}

Result<void> enter_root() {
  if (chdir(kRoot) != 0) return Error::system("chdir to the new root");
  ATOLL_TRY_VOID(make_directory("run/old", 0700));
  if (syscall(SYS_pivot_root, ".", "run/old") != 0) return Error::system("pivot_root");
  if (chdir("/") != 0) return Error::system("chdir /");
  if (umount2("/run/old", MNT_DETACH) != 0) return Error::system("detach the old root");
  if (rmdir("/run/old") != 0) return Error::system("remove the place of the old root");
  return {};
}

// What the process that passes the agent's stream on has: where the agent's listener is, and where
// its notes come that nothing runs.
struct AgentsEnds {
  Fd here, rest;
};

// Until the other side is gone.
[[noreturn]] void pass_on(Fd port, AgentsEnds ends) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  int here = ends.here.get();
  auto connect = [here] { return linux::connect_at(here, kListenerName, SOCK_STREAM); };
  // The clock is the host's.
  microvm::Relay relay(std::move(port), {connect, [](int64_t) {}, std::move(ends.rest)});
  while (true) {
    std::vector<pollfd> polls;
    relay.add_watches(polls);
    if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) _exit(1);
    if (!relay.move_bytes()) _exit(1);
  }
}

Result<Fd> take_port(int number) {
  Fd port(fcntl(number, F_DUPFD_CLOEXEC, kGuestPassageFd + 1));
  if (!port || fcntl(port.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("take a port");
  return port;
}

// Where programs' connections arrive.
Result<microvm::Inlets> make_network() {
  ATOLL_TRY(microvm::Inlets inlets, microvm::make_inlets());
  ATOLL_TRY_VOID(redirect_connections(egress::kInsideV4, egress::kConnectionPort));
  return inlets;
}

// Both in processes of their own. If the second ends, nothing leaves any more.
Result<void> start_carriers(Fd port, AgentsEnds ends, Fd passage, microvm::Inlets inlets) {
  pid_t relay = fork();
  if (relay < 0) return Error::system("fork");
  if (relay == 0) {
    signal(SIGPIPE, SIG_IGN);
    passage.reset();
    inlets = {};
    pass_on(std::move(port), std::move(ends));
  }
  pid_t carrier = fork();
  if (carrier < 0) return Error::system("fork");
  if (carrier == 0) {
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    port.reset();
    ends = {};
    microvm::serve_inlets(std::move(passage), std::move(inlets));
  }
  return {};
}

// What a kernel counts in groups that enforce limits: here the agent itself does, in the second.
Result<Fd> make_counter(const char* name, std::string_view text) {
  Fd file(memfd_create(name, MFD_CLOEXEC));
  if (!file) return Error::system("memfd_create");
  ATOLL_TRY_VOID(write_all(file.get(), text));
  return file;
}

// What the agent is born with, beside what is made for it.
struct Given {
  Fd listener, groups, sudo, rest;
};

Result<void> place_birth(const agent::BirthRecord& record, Given given) {
  std::string_view bytes(reinterpret_cast<const char*>(&record), sizeof record);
  ATOLL_TRY(Fd birth, linux::make_sealed_memory("atoll-birth", bytes));
  ATOLL_TRY(Fd memory, make_counter("atoll-memory", "oom_kill 0\n"));
  ATOLL_TRY(Fd pids, make_counter("atoll-pids", "max 0\n"));
  Fd notice(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!notice) return Error::system("eventfd");
  const linux::Placement places[] = {{given.listener.get(), agent::kListenerFd},
                                     {given.groups.get(), agent::kCgroupFd},
                                     {birth.get(), agent::kBirthFd},
                                     {memory.get(), agent::kMemoryEventsFd},
                                     {pids.get(), agent::kPidsEventsFd},
                                     {notice.get(), agent::kOomNoticeFd},
                                     {given.sudo.get(), agent::kSudoFd},
                                     {given.rest.get(), agent::kRestFd}};
  ATOLL_TRY_VOID(linux::place_descriptors(places, agent::kRestFd));
  // Numbers that mean other descriptors now.
  for (Fd* fd :
       {&birth, &memory, &pids, &notice, &given.listener, &given.groups, &given.sudo, &given.rest})
    (void)fd->release();
  return {};
}

}  // namespace

Result<void> become_agent() {
  linux::expect_kernel_gaps();
  umask(0022);
  ATOLL_TRY(Kept kept, take_files());
  ATOLL_TRY_VOID(mount_at("proc", "/proc", kNoSuidNoDev | MS_NOEXEC));
  Given given;
  ATOLL_TRY(given.groups, make_groups());
  ATOLL_TRY_VOID(make_links());
  ATOLL_TRY(Fd run_atoll, build_root(kept.sudo));
  // Out of the sandbox's reach once the old root is detached.
  AgentsEnds ends;
  ATOLL_TRY(ends.here, open_file("/run", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(given.listener, linux::listen_at(ends.here.get(), kListenerName, SOCK_STREAM, 16));
  ATOLL_TRY(auto rest, linux::make_socket_pair(SOCK_SEQPACKET));
  ends.rest = std::move(rest.ours);
  given.rest = std::move(rest.theirs);
  ATOLL_TRY(Fd port, take_port(STDIN_FILENO));
  ATOLL_TRY(Fd passage, take_port(kGuestPassageFd));
  ATOLL_TRY(microvm::Inlets inlets, make_network());
  ATOLL_TRY_VOID(enter_root());
  ATOLL_TRY(given.sudo, linux::listen_for_sudo(run_atoll.get()));
  // As many as the sentry itself may have: its kernel does not let that limit be lowered.
  uint32_t pids = kSentryPids + kSentryPidsEach * kept.birth.guest.pids;
  ATOLL_TRY_VOID(linux::confine_agent(pids));
  ATOLL_TRY_VOID(
      start_carriers(std::move(port), std::move(ends), std::move(passage), std::move(inlets)));
  ATOLL_TRY_VOID(place_birth(kept.birth, std::move(given)));
  (void)run_atoll.release();  // its number means another descriptor now
  return linux::limit_open_files(kept.birth.guest.open_files, kAgentOpenFiles);
}

}  // namespace atl::gvisor
