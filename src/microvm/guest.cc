#include "microvm/guest.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <net/if.h>

#include "agent/birth_record.h"
#include "base/file.h"
#include "egress/synthetic.h"
#include "linux/caught_connections.h"
#include "linux/clone.h"
#include "linux/devices.h"
#include "linux/file_tree.h"
#include "linux/masks.h"
#include "linux/own_tools.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"
#include "microvm/guest_disks.h"
#include "microvm/guest_groups.h"
#include "microvm/guest_jail.h"
#include "microvm/initramfs.h"
#include "microvm/inlets.h"
#include "microvm/machine.h"
#include "microvm/rebirth.h"
#include "microvm/relay.h"
#include "microvm/still_disk.h"

namespace atl::microvm {
namespace {

constexpr size_t kMaxProgramBytes = 64 << 20;
constexpr const char* kBase = "/base";
constexpr const char* kLayer = "/layer";
constexpr const char* kListenerName = "agent";
// As the jail's, where egress answers there.
constexpr std::string_view kResolver = "nameserver 198.18.0.1\noptions timeout:2 attempts:2\n";

struct Kept {
  agent::BirthRecord birth;
  std::string sudo;
  Fd own_program;
};

Result<void> mount_at(const char* type, const std::string& target, unsigned long flags,
                      const char* options = nullptr) {
  ATOLL_TRY_VOID(make_directory(target, 0755));
  if (mount(type, target.c_str(), type, flags, options) != 0)
    return Error::system("mount " + target);
  return {};
}

Result<void> mount_disk(const char* serial, const char* type, const std::string& target,
                        unsigned long flags) {
  std::optional<std::string> disk = find_disk(serial);
  if (!disk) return Error::from_errno(std::string("find the disk ") + serial, ENOENT);
  ATOLL_TRY_VOID(make_directory(target, 0755));
  const char* options = (flags & MS_RDONLY) != 0 ? nullptr : "noinit_itable";
  if (mount(disk->c_str(), target.c_str(), type, flags, options) != 0)
    return Error::system("mount " + *disk + " on " + target);
  return {};
}

Result<Kept> take_files() {
  Kept kept;
  ATOLL_TRY(std::string record, read_file(kGuestBirth));
  if (record.size() != sizeof kept.birth) return Error(Code::kCorrupt, "bad birth record");
  std::memcpy(&kept.birth, record.data(), sizeof kept.birth);
  ATOLL_TRY(kept.sudo, read_file(kGuestSudo, kMaxProgramBytes));
  ATOLL_TRY(kept.own_program, open_file(kGuestProgram, O_RDONLY));
  for (const char* name : {kGuestBirth, kGuestSudo, kGuestProgram}) unlink(name);
  return kept;
}

// The root that the kernel made cannot be left by pivot_root(2), so another one is put over it.
Result<void> change_root() {
  if (chdir(kBase) != 0) return Error::system("chdir");
  if (mount(".", "/", nullptr, MS_MOVE, nullptr) != 0) return Error::system("move the root");
  if (chroot(".") != 0 || chdir("/") != 0) return Error::system("change the root");
  return {};
}

Result<Kept> prepare_base() {
  ATOLL_TRY_VOID(mount_at("tmpfs", kBase, MS_NOSUID | MS_NODEV, "mode=0700,size=16m"));
  unsigned long flags = MS_NOSUID | MS_NOEXEC;
  ATOLL_TRY_VOID(mount_at("devtmpfs", std::string(kBase) + "/dev", flags));
  ATOLL_TRY_VOID(mount_at("proc", std::string(kBase) + "/proc", flags | MS_NODEV));
  ATOLL_TRY_VOID(mount_at("sysfs", std::string(kBase) + "/sys", flags | MS_NODEV));
  ATOLL_TRY_VOID(load_modules());
  ATOLL_TRY(Kept kept, take_files());
  ATOLL_TRY_VOID(change_root());
  return kept;
}

// The disk may be a copy of another machine's. An overlay does not take the working directory of
// one that was not ended.
Result<void> prepare_layer() {
  ATOLL_TRY(Fd layer, open_file(kLayer, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY_VOID(linux::remove_tree(layer.get(), "work"));
  ATOLL_TRY_VOID(make_directory("/layer/upper", 0755));
  return make_directory("/layer/work", 0755);
}

Result<void> mount_disks() {
  unsigned long flags = MS_NOSUID | MS_NODEV;
  ATOLL_TRY_VOID(mount_disk(kImageSerial, "erofs", "/image", flags | MS_RDONLY));
  ATOLL_TRY_VOID(mount_disk(kDiskSerial, "ext4", kLayer, flags | MS_NOATIME));
  if (find_disk(kToolboxSerial))
    ATOLL_TRY_VOID(mount_disk(kToolboxSerial, "erofs", "/toolbox", flags | MS_RDONLY));
  return prepare_layer();
}

// Memory is promised as on a host that has plenty: what is used too much of ends in the limit of
// the sandbox, and its verdict, not in an allocation that fails.
Result<void> promise_memory() {
  return write_file_at(AT_FDCWD, "/proc/sys/vm/overcommit_memory", "1");
}

Result<void> raise_loopback() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::system("socket");
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return Error::system("raise lo");
  return {};
}

// Where programs' connections arrive, and what makes the kernel send them there.
struct Network {
  Inlets inlets;
  Fd catcher;
};

Result<Network> make_network() {
  Network network;
  ATOLL_TRY_VOID(raise_loopback());
  ATOLL_TRY_VOID(linux::own_all_addresses(egress::kInsideV4));
  ATOLL_TRY(network.inlets, make_inlets());
  int connections = network.inlets.connections.get();
  ATOLL_TRY(network.catcher, linux::catch_connections(egress::kInsideV4, connections));
  return network;
}

// In a process of its own: if it ends, nothing leaves any more, and the rest goes on.
Result<void> start_carrier(Inlets inlets) {
  pid_t carrier = fork();
  if (carrier < 0) return Error::system("fork");
  if (carrier > 0) return {};
  auto port = open_port(kPassageName);
  if (!port) _exit(1);
  serve_inlets(std::move(*port), std::move(inlets));
}

// The machine's own clock knows whole seconds only.
void set_clock(int64_t time_ns) {
  timespec time = {.tv_sec = time_ns / 1'000'000'000, .tv_nsec = time_ns % 1'000'000'000};
  clock_settime(CLOCK_REALTIME, &time);
}

// Until the agent or the other side ends.
Result<void> serve(Fd port, int agent, Fd rest) {
  ATOLL_TRY(Fd here, open_file("/", O_PATH | O_DIRECTORY));
  auto connect = [&here] { return linux::connect_at(here.get(), kListenerName, SOCK_STREAM); };
  ATOLL_TRY(Fd layer, open_file(kLayer, O_RDONLY | O_DIRECTORY));
  StillDisk disk(std::move(layer));
  auto reborn = [notes = rest.get()](const Rebirth& told) { return be_reborn(told, notes); };
  auto still = [&disk](Fd asker) { disk.begin(std::move(asker)); };
  Relay relay(std::move(port), {connect, set_clock, std::move(rest), still, reborn});
  while (!linux::has_ended(agent)) {
    std::vector<pollfd> polls = {{.fd = agent, .events = POLLIN, .revents = 0}};
    relay.add_watches(polls);
    if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) return Error::system("poll");
    ATOLL_TRY_VOID(relay.move_bytes());
  }
  return Error(Code::kUnavailable, "the agent has ended");
}

Result<void> boot() {
  signal(SIGPIPE, SIG_IGN);
  umask(0022);
  ATOLL_TRY(Kept kept, prepare_base());
  ATOLL_TRY_VOID(mount_disks());
  ATOLL_TRY(GuestGroups groups, make_guest_groups("/groups", kept.birth.guest));
  ATOLL_TRY_VOID(linux::mount_devices("/devices"));
  ATOLL_TRY_VOID(linux::mount_tools("/tools", kept.sudo));
  ATOLL_TRY_VOID(promise_memory());  // before the masks, which have its setting
  ATOLL_TRY_VOID(linux::mount_masks("/masks", kResolver));
  ATOLL_TRY(Network network, make_network());
  ATOLL_TRY(Fd here, open_file("/", O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd listener, linux::listen_at(here.get(), kListenerName, SOCK_STREAM, 16));
  ATOLL_TRY(auto rest, linux::make_socket_pair(SOCK_SEQPACKET));
  uint64_t namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  ATOLL_TRY(auto agent, linux::clone_process({.flags = namespaces, .cgroup = groups.agent.get()}));
  if (agent.in_child())
    become_agent({.birth = kept.birth,
                  .program = kept.own_program.get(),
                  .listener = listener.get(),
                  .rest = rest.theirs.get(),
                  .groups = groups});
  listener.reset();
  rest.theirs.reset();
  ATOLL_TRY_VOID(start_carrier(std::move(network.inlets)));
  ATOLL_TRY(Fd port, open_port(kPortName));
  return serve(std::move(port), agent.pidfd.get(), std::move(rest.ours));
}

}  // namespace

void run_guest() {
  Result<void> ended = boot();
  std::string line = "atoll: " + ended.error().message() + "\n";
  // Seen on the console of who looks for it.
  auto log = open_file("/dev/kmsg", O_WRONLY);
  if (log) (void)write_all(log->get(), line);
  reboot(RB_AUTOBOOT);
  _exit(1);
}

}  // namespace atl::microvm
