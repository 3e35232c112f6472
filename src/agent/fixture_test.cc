#include "agent/fixture_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include "agent/birth_record.h"
#include "agent/rest_note.h"
#include "agent/sudo_protocol.h"
#include "base/check.h"
#include "base/file.h"
#include "linux/capabilities.h"
#include "linux/clone.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"

namespace atl::agent {
namespace {

using linux::Controller;

constexpr uid_t kFirstUid = 100000;
constexpr int kFreeFd = 20;

constexpr uint64_t kAgentCapabilities = linux::capability_mask(
    {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID, CAP_KILL,
     CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_SETPCAP, CAP_SYS_PTRACE});

Fd make_birth_record(Starter starter, OnOom on_oom) {
  BirthRecord record = {kBirthVersion, starter == Starter::kSpawner, on_oom, 0, 1, {}, {}, {}};
  record.nonce.fill(0x5a);
  Fd file(memfd_create("birth", MFD_CLOEXEC));
  ATOLL_CHECK(write_all(file.get(), {reinterpret_cast<char*>(&record), sizeof record}).ok());
  return file;
}

// The agent is executed from memory, as the warden does: no file of the host need be reachable.
Fd copy_program() {
  auto program = open_file(ATOLL_AGENT_PATH, O_RDONLY);
  ATOLL_CHECK(program.ok());
  struct stat status;
  ATOLL_CHECK(fstat(program->get(), &status) == 0);
  Fd copy(memfd_create("atoll-agent", MFD_CLOEXEC));
  off_t offset = 0;
  while (offset < status.st_size)
    ATOLL_CHECK(sendfile(copy.get(), program->get(), &offset, 1 << 30) > 0);
  return copy;
}

struct BirthFds {
  Fd listener, cgroup, record, program, go;
  std::array<Fd, 4> counters;
  Fd notes = {};
};

void place(int from, int to) { ATOLL_CHECK(dup2(from, to) == to); }

// The programs of the host on a small root of their own.
void enter_small_root(uint64_t bytes) {
  std::string size = "size=" + std::to_string(bytes) + ",mode=755";
  ATOLL_CHECK(mount("root", "/mnt", "tmpfs", 0, size.c_str()) == 0);
  for (const char* name : {"/usr", "/proc", "/dev", "/run"}) {
    std::string target = std::string("/mnt") + name;
    ATOLL_CHECK(mkdir(target.c_str(), 0755) == 0);
    ATOLL_CHECK(mount(name, target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0);
  }
  ATOLL_CHECK(mkdir("/mnt/tmp", 0777) == 0 && chmod("/mnt/tmp", 01777) == 0);
  for (const char* name : {"bin", "lib", "lib64"})
    ATOLL_CHECK(
        symlink((std::string("usr/") + name).c_str(), (std::string("/mnt/") + name).c_str()) == 0);
  ATOLL_CHECK(chroot("/mnt") == 0 && chdir("/") == 0);
}

void enter_own_mounts(uint64_t root_bytes) {
  ATOLL_CHECK(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  ATOLL_CHECK(mount("proc", "/proc", "proc", 0, nullptr) == 0);
  ATOLL_CHECK(mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0);
  const char* modes = "newinstance,gid=5,mode=0620,ptmxmode=0666";
  ATOLL_CHECK(mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, modes) == 0);
  ATOLL_CHECK(mount("/dev/pts/ptmx", "/dev/ptmx", nullptr, MS_BIND, nullptr) == 0);
  if (root_bytes > 0) enter_small_root(root_bytes);
}

// As the warden makes it.
void make_sudo_listener() {
  ATOLL_CHECK(mkdir("/run/atoll", 0755) == 0);
  auto directory = open_file("/run/atoll", O_RDONLY | O_DIRECTORY);
  ATOLL_CHECK(directory.ok());
  auto listener = linux::listen_at(directory->get(), "sudo", SOCK_SEQPACKET, 16);
  ATOLL_CHECK(listener.ok() && chmod(kSudoSocket, 0666) == 0);
  place(listener->get(), kSudoFd);
}

// In the new process 1: become what the warden's helper makes it, then the agent. What each program
// must set or shed by itself is left wrong on purpose: inheritable capabilities, new privileges,
// core size, umask, the limit of open files.
[[noreturn]] void become_agent(Starter starter, uint64_t root_bytes, const BirthFds& fds) {
  char go;
  ATOLL_CHECK(read(fds.go.get(), &go, 1) == 1);
  ATOLL_CHECK(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 && setgroups(0, nullptr) == 0);
  enter_own_mounts(root_bytes);
  make_sudo_listener();
  ATOLL_CHECK(linux::limit_bounding_set(kAgentCapabilities).ok());
  ATOLL_CHECK(linux::set_capabilities({.effective = kAgentCapabilities,
                                       .permitted = kAgentCapabilities,
                                       .inheritable = kAgentCapabilities})
                  .ok());
  rlimit core = {4096, 4096}, files = {kOpenFiles, 4096};
  ATOLL_CHECK(setrlimit(RLIMIT_CORE, &core) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0);
  umask(0);
  // A killed test must not leave its sandbox. After the change of uid, which clears it.
  ATOLL_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  char name[] = "atoll-agent", role[] = "spawner";
  char* agent_arguments[] = {name, nullptr};
  char* spawner_arguments[] = {name, role, nullptr};
  char* environment[] = {nullptr};
  if (starter == Starter::kSpawner) {
    int pair[2], gate[2];
    ATOLL_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    ATOLL_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) == 0);
    ATOLL_CHECK(send(gate[0], &kGateOpen, 1, 0) == 1);
    pid_t pid = fork();
    ATOLL_CHECK(pid >= 0);
    place(pair[pid == 0 ? 1 : 0], pid == 0 ? kSpawnersSocketFd : kSpawnerFd);
    if (pid == 0) place(gate[1], kSpawnersGateFd);
    if (pid == 0) fexecve(fds.program.get(), spawner_arguments, environment);
  }
  place(fds.listener.get(), kListenerFd);
  place(fds.cgroup.get(), kCgroupFd);
  place(fds.record.get(), kBirthFd);
  for (int i = 0; i < 4; ++i)
    if (fds.counters[i]) place(fds.counters[i].get(), kMemoryEventsFd + i);
  if (fds.notes) place(fds.notes.get(), kRestFd);
  fexecve(fds.program.get(), agent_arguments, environment);
  _exit(1);
}

// Away from the numbers that the agent's descriptors take.
Fd lifted(Fd fd) {
  ATOLL_CHECK(fd.valid());
  return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kFreeFd));
}

void write_map(pid_t pid, const char* file) {
  std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  std::string map = "0 " + std::to_string(kFirstUid) + " 65536";
  ATOLL_CHECK(write_file_at(AT_FDCWD, path, map).ok());
}

}  // namespace

Starter limiting_starter() {
  auto tree = linux::read_cgroups();
  return tree.ok() && tree->uses_v1() ? Starter::kSpawner : Starter::kAgent;
}

ReachableProgram::ReachableProgram(const std::string& built) {
  char directory[] = "/tmp/atoll-program-XXXXXX";
  directory_ = mkdtemp(directory);
  ATOLL_CHECK(chmod(directory, 0755) == 0);
  path_ = directory_ + "/" + std::filesystem::path(built).filename().string();
  std::filesystem::copy_file(built, path_);
}

ReachableProgram::~ReachableProgram() { std::filesystem::remove_all(directory_); }

TestSandbox::TestSandbox(Starter starter, TestLimits limits) : starter_(starter), limits_(limits) {
  static int count = 0;
  name_ = "atoll-agent-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  auto tree = linux::read_cgroups();
  if (tree.ok()) tree_ = *tree;
  group_ = tree_.v2 + "/" + name_;
  directory_ = "/tmp/" + name_;
  if (geteuid() != 0 || !tree_.check().ok() || !make_cgroups() || !set_limits()) {
    problem_ = "needs root, a cgroup v2 tree and the memory and pids controllers";
    return;
  }
  make_listener();
  launch();
  if (starter == Starter::kSpawner) find_spawner();
}

TestSandbox::~TestSandbox() {
  if (pidfd_) {
    // Everything in the namespace dies with its process 1.
    ATOLL_CHECK(linux::send_signal(pidfd_.get(), SIGKILL).ok() || !agent_is_alive());
    ATOLL_CHECK(linux::wait_for_exit(pidfd_.get()).ok());
  }
  if (!tree_.v2.empty()) {
    ATOLL_CHECK(linux::kill_group(group_, test_timeout_ms()).ok());
    ATOLL_CHECK(linux::remove_group(group_).ok());
  }
  for (const std::string& hierarchy : tree_.v1)
    if (!hierarchy.empty()) ATOLL_CHECK(linux::remove_group(hierarchy + "/" + name_).ok());
  unlink((directory_ + "/agent").c_str());
  rmdir(directory_.c_str());
}

bool TestSandbox::make_cgroups() {
  for (const char* child : {"", "/agent", "/run"})
    if (mkdir((group_ + child).c_str(), 0755) != 0) return false;
  // Starting in a leaf is checked like a move: it needs the nearest common ancestor's cgroup.procs.
  for (const char* file : {"/cgroup.procs", "/run", "/run/cgroup.procs"})
    if (chown((group_ + file).c_str(), kFirstUid, kFirstUid) != 0) return false;
  return true;
}

std::string TestSandbox::limiting_group(Controller controller) const {
  const std::string& v1 = tree_.v1[static_cast<size_t>(controller)];
  return v1.empty() ? group_ + "/run" : v1 + "/" + name_;
}

bool TestSandbox::set_limits() {
  for (Controller controller : {Controller::kMemory, Controller::kPids}) {
    const std::string& v1 = tree_.v1[static_cast<size_t>(controller)];
    std::string text = "+" + std::string(controller_name(controller));
    for (const std::string& group : {tree_.v2, group_, group_ + "/run"})
      if (v1.empty() && !write_file_at(AT_FDCWD, group + "/cgroup.subtree_control", text).ok())
        return false;
    if (!v1.empty() && !make_directory(v1 + "/" + name_, 0755).ok()) return false;
  }
  std::string memory = limiting_group(Controller::kMemory);
  std::string file = memory == group_ + "/run" ? "/memory.max" : "/memory.limit_in_bytes";
  std::string bytes = std::to_string(limits_.memory_bytes), pids = std::to_string(limits_.pids);
  if (limits_.memory_bytes > 0 && !write_file_at(AT_FDCWD, memory + file, bytes).ok()) return false;
  std::string pids_file = limiting_group(Controller::kPids) + "/pids.max";
  return limits_.pids == 0 || write_file_at(AT_FDCWD, pids_file, pids).ok();
}

// Memory events, pids events, memory peak, notice; as the warden gives them.
std::array<Fd, 4> TestSandbox::open_counters() const {
  std::string memory = limiting_group(Controller::kMemory);
  bool v1 = memory != group_ + "/run";
  auto events = open_file(memory + (v1 ? "/memory.oom_control" : "/memory.events"), O_RDONLY);
  auto pids = open_file(limiting_group(Controller::kPids) + "/pids.events", O_RDONLY);
  auto peak = open_file(memory + (v1 ? "/memory.max_usage_in_bytes" : "/memory.peak"), O_RDONLY);
  ATOLL_CHECK(events.ok() && pids.ok());
  // Programs that are not in that group have no part in its peak.
  if (v1 && starter_ == Starter::kAgent) peak = Fd();
  Fd notice(v1 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : dup(events->get()));
  std::string line = std::to_string(notice.get()) + " " + std::to_string(events->get());
  if (v1) ATOLL_CHECK(write_file_at(AT_FDCWD, memory + "/cgroup.event_control", line).ok());
  return {lifted(std::move(*events)), lifted(std::move(*pids)),
          peak.ok() && *peak ? lifted(std::move(*peak)) : Fd(), lifted(std::move(notice))};
}

void TestSandbox::make_listener() {
  ATOLL_CHECK(mkdir(directory_.c_str(), 0700) == 0);
  sockaddr_un address = {AF_UNIX, {}};
  std::string path = directory_ + "/agent";
  ATOLL_CHECK(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ATOLL_CHECK(bind(listener_.get(), generic, sizeof address) == 0);
  ATOLL_CHECK(listen(listener_.get(), 16) == 0);
}

void TestSandbox::launch() {
  int go[2];
  ATOLL_CHECK(pipe2(go, O_CLOEXEC) == 0);
  Fd go_writer(go[1]);
  auto run = open_file(group_ + "/run", O_RDONLY | O_DIRECTORY);
  auto own = open_file(group_ + "/agent", O_RDONLY | O_DIRECTORY);
  ATOLL_CHECK(run.ok() && own.ok());
  BirthFds fds = {lifted(std::move(listener_)),
                  lifted(std::move(*run)),
                  lifted(make_birth_record(starter_, limits_.on_oom)),
                  lifted(copy_program()),
                  lifted(Fd(go[0])),
                  open_counters()};
  if (limits_.is_noted) {
    auto pair = linux::make_socket_pair(SOCK_SEQPACKET);
    ATOLL_CHECK(pair.ok());
    notes_ = lifted(std::move(pair->ours));
    fds.notes = lifted(std::move(pair->theirs));
  }
  auto child = linux::clone_process(
      {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS, .cgroup = own->get()});
  ATOLL_CHECK(child.ok());
  if (child->in_child()) become_agent(starter_, limits_.root_bytes, fds);
  pid_ = child->pid;
  pidfd_ = std::move(child->pidfd);
  write_map(pid_, "uid_map");
  write_map(pid_, "gid_map");
  ATOLL_CHECK(write(go_writer.get(), "g", 1) == 1);
}

void TestSandbox::find_spawner() {
  std::string path =
      "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
  ATOLL_CHECK(eventually([&] {
    auto children = read_file(path);
    if (children.ok() && !children->empty()) spawner_pid_ = std::stoi(*children);
    return spawner_pid_ != 0;
  }));
  for (Controller controller : {Controller::kMemory, Controller::kPids}) {
    std::string group = limiting_group(controller);
    if (group == group_ + "/run") continue;
    std::string pid = std::to_string(spawner_pid_);
    ATOLL_CHECK(write_file_at(AT_FDCWD, group + "/cgroup.procs", pid).ok());
  }
}

Fd TestSandbox::connect() const {
  sockaddr_un address = {AF_UNIX, {}};
  (directory_ + "/agent").copy(address.sun_path, sizeof address.sun_path - 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ATOLL_CHECK(::connect(fd.get(), generic, sizeof address) == 0);
  return fd;
}

std::vector<std::string> TestSandbox::leaves() const {
  std::vector<std::string> names;
  DIR* directory = opendir((group_ + "/run").c_str());
  if (directory == nullptr) return names;
  while (dirent* entry = readdir(directory))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.push_back(entry->d_name);
  closedir(directory);
  return names;
}

bool TestSandbox::agent_is_alive() const {
  pollfd poll_fd = {pidfd_.get(), POLLIN, 0};
  return poll(&poll_fd, 1, 0) == 0;
}

bool TestSandbox::has_program(const std::string& name, char state) const {
  for (const std::string& leaf : leaves()) {
    auto pids = read_file(group_ + "/run/" + leaf + "/cgroup.procs");
    std::istringstream all(pids.ok() ? *pids : "");
    for (std::string pid; all >> pid;) {
      auto stat = read_file("/proc/" + pid + "/stat");
      if (stat.ok() && stat->find("(" + name + ") " + state) != std::string::npos) return true;
    }
  }
  return false;
}

bool TestSandbox::freeze() const {
  return linux::freeze_group(group_ + "/run", test_timeout_ms()).ok();
}

bool TestSandbox::thaw() const { return linux::thaw_group(group_ + "/run").ok(); }

Start shell(std::string script) {
  Start start;
  start.arguments = {"/bin/sh", "-c", std::move(script)};
  start.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  start.directory = "/tmp";
  start.output_limit_bytes = 64 << 20;
  return start;
}

}  // namespace atl::agent
