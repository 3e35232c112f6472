#include "gvisor/guest.h"

#include <fcntl.h>
#include <linux/capability.h>
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
#include "gvisor/still_layer.h"
#include "linux/boot_id.h"
#include "linux/capabilities.h"
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
  ATOLL_TRY_VOID(
      make_directories({"/run/links", "/run/links/usr", "/run/links/usr/local",
                        "/run/links/usr/local/bin", "/run/links/opt", "/run/links/opt/atoll"}));
  if (symlink("/run/atoll/bin/sudo", "/run/links/usr/local/bin/sudo") != 0)
    return Error::system("link sudo");
  return {};
}

// Over the image's own. In what a snapshot brought it is what its sandbox made of it.
Result<void> write_resolver() {
  ATOLL_TRY_VOID(make_directories({"/tmp/upper/etc"}));
  auto file = open_file("/tmp/upper/etc/resolv.conf", O_WRONLY | O_CREAT | O_EXCL, 0644);
  return file ? write_all(file->get(), kResolver) : std::move(file).error();
}

Result<void> mount_root() {
  bool is_new = access("/tmp/upper", F_OK) != 0;
  ATOLL_TRY_VOID(make_directories({"/tmp/upper", "/tmp/work", kRoot}));
  if (is_new) ATOLL_TRY_VOID(write_resolver());
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

// Where an image has something else in its place, there is none.
Result<void> mount_toolbox() {
  std::string target = std::string(kRoot) + "/opt/atoll";
  struct stat status;
  if (access(kGuestToolbox, F_OK) != 0) return {};
  if (lstat(target.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return {};
  if (mount(kGuestToolbox, target.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return Error::system("mount " + target);
  return {};
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

Result<void> cover_boot_id() {
  ATOLL_TRY(Fd run, open_file("/run", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY_VOID(linux::draw_boot_id(run.get()));
  std::string target = std::string(kRoot) + "/proc/sys/kernel/random/boot_id";
  std::string source = std::string("/run/") + linux::kBootIdName;
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return Error::system("cover " + target);
  return {};
}

Result<Fd> build_root(const std::string& sudo) {
  ATOLL_TRY_VOID(mount_root());
  ATOLL_TRY_VOID(mount_devices());
  std::string root = kRoot;
  ATOLL_TRY_VOID(mount_at("proc", root + "/proc", kNoSuidNoDev | MS_NOEXEC));
  ATOLL_TRY_VOID(cover_boot_id());
  ATOLL_TRY_VOID(mount_toolbox());
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

// The table that brings connections to the inlets is of the network, which is not in the memory
// that it begins with.
constexpr uint64_t kOverNetwork = linux::capability_mask({CAP_NET_ADMIN, CAP_NET_RAW});

Result<void> be_reborn(int here, const microvm::Rebirth& rebirth, int notes) {
  ATOLL_TRY_VOID(linux::draw_boot_id(here));
  ATOLL_TRY_VOID(redirect_connections(egress::kInsideV4, egress::kConnectionPort));
  return microvm::tell_agent(rebirth, notes);
}

// Until the other side is gone.
[[noreturn]] void pass_on(Fd port, AgentsEnds ends) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  int here = ends.here.get();
  microvm::Relay* told = nullptr;
  StillLayer layer([&told](microvm::RelayKind kind) { told->tell_keeper(kind); });
  // The clock is the host's.
  microvm::Relay::Guest guest = {
      .connect = [here] { return linux::connect_at(here, kListenerName, SOCK_STREAM); },
      .set_clock = [](int64_t) {},
      .rest = std::move(ends.rest)};
  guest.still = [&layer](Fd asker) { layer.begin(std::move(asker)); };
  guest.be_reborn = [here, notes = guest.rest.get()](const microvm::Rebirth& told_now) {
    return be_reborn(here, told_now, notes);
  };
  guest.files_kept = [&layer](int system_errno) { layer.take_answer(system_errno); };
  microvm::Relay relay(std::move(port), std::move(guest));
  told = &relay;
  while (true) {
    std::vector<pollfd> polls;
    relay.add_watches(polls);
    layer.add_watches(polls);
    if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) _exit(1);
    layer.look();
    if (!relay.move_bytes()) _exit(1);
  }
}

Result<Fd> take_port(int number) {
  Fd port(fcntl(number, F_DUPFD_CLOEXEC, kGuestProgramFd + 1));
  if (!port || fcntl(port.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("take a port");
  return port;
}

// Where programs' connections arrive.
Result<microvm::Inlets> make_network() {
  ATOLL_TRY(microvm::Inlets inlets, microvm::make_inlets());
  ATOLL_TRY_VOID(redirect_connections(egress::kInsideV4, egress::kConnectionPort));
  return inlets;
}

// In a process of its own, which may do nothing but change the sentry's network.
Result<void> start_relay(Fd port, AgentsEnds ends) {
  pid_t relay = fork();
  if (relay < 0) return Error::system("fork");
  if (relay > 0) return {};
  signal(SIGPIPE, SIG_IGN);
  bool confined = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                  linux::limit_bounding_set(kOverNetwork).ok() &&
                  linux::set_capabilities({.effective = kOverNetwork, .permitted = kOverNetwork});
  if (!confined) _exit(1);
  pass_on(std::move(port), std::move(ends));
}

// The same. If it ends, nothing leaves any more.
Result<void> start_carrier(Fd passage, microvm::Inlets inlets) {
  pid_t carrier = fork();
  if (carrier < 0) return Error::system("fork");
  if (carrier > 0) return {};
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  microvm::serve_inlets(std::move(passage), std::move(inlets));
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

Result<void> execute_copy() {
  ATOLL_TRY(std::string own, read_all(kGuestProgramFd, kMaxProgramBytes));
  ATOLL_TRY(Fd copy, linux::make_sealed_memory("atoll-agent", own));
  close(kGuestProgramFd);
  std::string name = "atoll-agent", role = kGuestCopyRole;
  char* arguments[] = {name.data(), role.data(), nullptr};
  char* environment[] = {nullptr};
  syscall(SYS_execveat, copy.get(), "", arguments, environment, AT_EMPTY_PATH);
  return Error::system("execute a copy");
}

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
  ATOLL_TRY(Fd passage, take_port(STDOUT_FILENO));
  ATOLL_TRY(microvm::Inlets inlets, make_network());
  ATOLL_TRY_VOID(enter_root());
  ATOLL_TRY(given.sudo, linux::listen_for_sudo(run_atoll.get()));
  // As many as the sentry itself may have: its kernel does not let that limit be lowered.
  uint32_t pids = kSentryPids + kSentryPidsEach * kept.birth.guest.pids;
  ATOLL_TRY_VOID(start_relay(std::move(port), std::move(ends)));
  ATOLL_TRY_VOID(linux::confine_agent(pids));
  ATOLL_TRY_VOID(start_carrier(std::move(passage), std::move(inlets)));
  ATOLL_TRY_VOID(place_birth(kept.birth, std::move(given)));
  (void)run_atoll.release();  // its number means another descriptor now
  return linux::limit_open_files(kept.birth.guest.open_files, kAgentOpenFiles);
}

}  // namespace atl::gvisor
