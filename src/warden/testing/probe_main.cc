// The tests' agent: process 1 of an isolate that answers one question per connection about what it
// sees.
//   report              everything about this process, as "key: value" lines
//   spawner             the same, asked of the spawner, or "none"
//   fill PATH BYTES     writes; answers bytes written and the errno that stopped it
//   read PATH           the file
//   names PATH          what is in the directory
//   leaf                starts a process in a new group under descriptor 4 and reads its cgroup
//   limited QUESTION    the same question, answered by a process under the sandbox's limits; or
//                       "signal N" if it was killed
//     hog BYTES         takes so much memory
//     forks N           how many of N processes it can start
//     files             the highest number of open files
//     spin MS           spins so long; the cpu time it got, in ms
//   counters            what the counters' descriptors say
//   up                  what ".." of descriptor 4 leads to
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "agent/birth_record.h"
#include "agent/exec_filter.h"
#include "agent/launcher.h"
#include "agent/probe.h"
#include "agent/spawner.h"
#include "base/file.h"
#include "linux/clone.h"
#include "linux/pidfd.h"

namespace {

using namespace atl;

std::string text_of(const std::string& path) {
  auto text = read_file(path, 1 << 20);
  return text ? *text : "error " + std::to_string(text.error().system_errno()) + "\n";
}

std::string link_of(const std::string& path) {
  char target[512];
  ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length < 0 ? "error" : std::string(target, static_cast<size_t>(length));
}

std::string names_in(const std::string& path) {
  std::string names;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return "error";
  int own = dirfd(directory.get());
  while (dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] == '.' || entry->d_name == std::to_string(own)) continue;
    names += std::string(entry->d_name) + " ";
  }
  return names;
}

std::string limit_of(__rlimit_resource_t resource) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return "error";
  return std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max);
}

std::string report() {
  std::string out = text_of("/proc/self/status");
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"})
    out += std::string("ns_") + name + ": " + link_of(std::string("/proc/self/ns/") + name) + "\n";
  out += "fds: " + names_in("/proc/self/fd") + "\n";
  out += "fd0: " + link_of("/proc/self/fd/0") + "\nfd3: " + link_of("/proc/self/fd/3") + "\n";
  out += "uid_map: " + text_of("/proc/self/uid_map");
  out += "gid_map: " + text_of("/proc/self/gid_map");
  out += "hostname: " + text_of("/proc/sys/kernel/hostname");
  out += "cwd: " + link_of("/proc/self/cwd") + "\n";
  out += "root_names: " + names_in("/") + "\n";
  out += "above_root_names: " + names_in("/..") + "\n";
  out += "dev_names: " + names_in("/dev") + "\n";
  out += "sys_names: " + names_in("/sys") + "\n";
  out += "environment: " + std::to_string(text_of("/proc/self/environ").size()) + "\n";
  out += "session: " + std::to_string(getsid(0)) + "\n";
  out += "core: " + limit_of(RLIMIT_CORE) + "\nnofile: " + limit_of(RLIMIT_NOFILE) + "\n";
  out += "rtprio: " + limit_of(RLIMIT_RTPRIO) + "\nnice: " + limit_of(RLIMIT_NICE) + "\n";
  out += "memlock: " + limit_of(RLIMIT_MEMLOCK) + "\nmsgqueue: " + limit_of(RLIMIT_MSGQUEUE) + "\n";
  out += "sigpending: " + limit_of(RLIMIT_SIGPENDING) + "\n";
  out += "cgroup_file:\n" + text_of("/proc/self/cgroup");
  out += "limits_end:\n[mounts]\n" + text_of("/proc/self/mountinfo");
  out += "[network]\n" + text_of("/proc/self/net/dev");
  return out;
}

std::string fill(const std::string& arguments) {
  size_t space = arguments.find(' ');
  if (space == std::string::npos) return "bad";
  int file = open(arguments.substr(0, space).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return "0 " + std::to_string(errno);
  long long wanted = std::atoll(arguments.c_str() + space + 1), done = 0;
  std::string block(65536, 'x');
  int stopped = 0;
  while (done < wanted && stopped == 0) {
    size_t size = std::min<long long>(static_cast<long long>(block.size()), wanted - done);
    ssize_t count = write(file, block.data(), size);
    if (count < 0) stopped = errno;
    if (count > 0) done += count;
  }
  if (stopped == 0 && fsync(file) != 0 && errno != EINVAL) stopped = errno;  // EINVAL: a device
  close(file);
  return std::to_string(done) + " " + std::to_string(stopped);
}

std::string run_in_leaf() {
  if (mkdirat(4, "e1", 0755) != 0) return "mkdir " + std::to_string(errno);
  Fd leaf(openat(4, "e1", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!leaf) return "open " + std::to_string(errno);
  auto child = linux::clone_process({.flags = 0, .cgroup = leaf.get()});
  if (!child) return "clone " + std::to_string(child.error().system_errno());
  if (child->in_child()) {
    pause();
    _exit(0);
  }
  std::string group = text_of("/proc/" + std::to_string(child->pid) + "/cgroup");
  auto killed = write_file_at(leaf.get(), "cgroup.kill", "1");
  if (!killed) return "kill " + std::to_string(killed.error().system_errno());
  auto status = linux::wait_for_exit(child->pidfd.get());
  if (!status) return "wait";
  leaf.reset();
  if (unlinkat(4, "e1", AT_REMOVEDIR) != 0) return "rmdir " + std::to_string(errno);
  return group;
}

std::string hog(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "error";
  for (size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return "held";
}

// As hog, in a process that stays.
std::string hold(size_t bytes) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return "pipe";
  pid_t child = fork();
  if (child == 0) {
    bool held = hog(bytes) == "held";
    (void)write_all(ready[1], held ? "x" : "");
    close_range(3, ~0u, 0);  // whoever reads our parent's answer waits for the end of it
    while (true) pause();
  }
  close(ready[1]);
  char byte;
  return read(ready[0], &byte, 1) == 1 ? "held" : "died";
}

std::string count_forks(int wanted) {
  std::vector<pid_t> children;
  while (static_cast<int>(children.size()) < wanted) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      pause();
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return std::to_string(children.size());
}

std::string count_files() {
  int highest = 0;
  for (int fd = dup(0); fd >= 0; fd = dup(0)) highest = fd;
  return std::to_string(highest + 1);
}

std::string spin(int milliseconds) {
  using std::chrono::steady_clock;
  auto end = steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (steady_clock::now() < end) continue;
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::to_string(used.tv_sec * 1000 + used.tv_nsec / 1000000);
}

std::string counters() {
  std::string out;
  for (int fd = 7; fd <= 9; ++fd) {
    char text[1024];
    ssize_t count = pread(fd, text, sizeof text, 0);
    out += count < 0 ? "error" : std::string(text, static_cast<size_t>(count));
  }
  uint64_t notices = 0;
  bool noticed = read(10, &notices, sizeof notices) == sizeof notices;
  return out + "noticed " + (noticed ? "1" : "0") + "\n";
}

std::string limited_answer(const std::string& question) {
  long argument = std::atol(question.substr(std::min(question.size(), question.find(' '))).c_str());
  if (question.starts_with("hog ")) return hog(static_cast<size_t>(argument));
  if (question.starts_with("hold ")) return hold(static_cast<size_t>(argument));
  if (question.starts_with("forks ")) return count_forks(static_cast<int>(argument));
  if (question.starts_with("spin ")) return spin(static_cast<int>(argument));
  if (question.starts_with("fill ")) return fill(question.substr(5));
  if (question == "files") return count_files();
  return report();
}

// In a new process in the caller's groups, or in a leaf.
std::string answer_apart(const std::string& question, int leaf) {
  int answer[2];
  if (pipe2(answer, O_CLOEXEC) != 0) return "pipe";
  auto child = linux::clone_process({.flags = 0, .cgroup = leaf});
  if (!child) return "clone " + std::to_string(child.error().system_errno());
  if (child->in_child()) {
    (void)write_all(answer[1], limited_answer(question));
    _exit(0);
  }
  close(answer[1]);
  Fd reader(answer[0]);
  auto text = read_all(reader.get(), 65536);
  auto status = linux::wait_for_exit(child->pidfd.get());
  if (!status || WIFSIGNALED(*status))
    return "signal " + std::to_string(status ? WTERMSIG(*status) : 0);
  return text ? *text : "error";
}

// Without one, its descriptor's number is anybody's, even the one that brought the question.
bool has_spawner() {
  agent::BirthRecord birth = {};
  return pread(agent::kBirthFd, &birth, sizeof birth, 0) == sizeof birth && birth.has_spawner == 1;
}

std::string ask_spawner(const std::string& question) {
  if (!has_spawner()) return "none";
  if (send(6, question.data(), question.size(), MSG_NOSIGNAL) < 0)
    return "send " + std::to_string(errno);
  std::string answer(65536, '\0');
  ssize_t count = recv(6, answer.data(), answer.size(), 0);
  return count < 0 ? "recv " + std::to_string(errno) : answer.substr(0, static_cast<size_t>(count));
}

std::string ask_limited(const std::string& question) {
  if (has_spawner()) return ask_spawner(question);
  if (mkdirat(4, "e2", 0755) != 0) return "mkdir " + std::to_string(errno);
  Fd leaf(openat(4, "e2", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string answer = answer_apart(question, leaf.get());
  leaf.reset();
  unlinkat(4, "e2", AT_REMOVEDIR);
  return answer;
}

std::string answer_to(const std::string& question) {
  if (question.starts_with("limited ")) return ask_limited(question.substr(8));
  if (question == "counters") return counters();
  if (question == "report") return report();
  if (question == "spawner") return ask_spawner("?");
  if (question == "leaf") return run_in_leaf();
  if (question.starts_with("fill ")) return fill(question.substr(5));
  if (question.starts_with("read ")) return text_of(question.substr(5));
  if (question.starts_with("names ")) return names_in(question.substr(6));
  if (question == "birth") return text_of("/proc/self/fd/5");
  if (question == "up") {
    struct stat here, up;
    bool same = fstatat(4, ".", &here, 0) == 0 && fstatat(4, "..", &up, 0) == 0 &&
                here.st_ino == up.st_ino && here.st_dev == up.st_dev;
    return same ? "nowhere" : "out";
  }
  return "what?";
}

// Keeps nothing open, so that the questions see what the spawner is born with.
bool serve_one_spawn() {
  rlimit files;  // raised for the pipes of many programs
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  auto basis = agent::make_spawn_basis();
  bool served = basis && agent::serve_spawn(3, *basis).ok();
  return setrlimit(RLIMIT_NOFILE, &files) == 0 && served;
}

// Answers questions and serves the real requests, which are longer than one byte.
void run_spawner() {
  char question[256];
  while (true) {
    ssize_t count = recv(3, question, 4, MSG_PEEK);
    if (count == 4 && std::string(question, 4) == "SPWN" && serve_one_spawn()) continue;
    count = recv(3, question, sizeof question, 0);
    if (count <= 0) return;
    std::string text(question, static_cast<size_t>(count));
    std::string answer = text == "?" ? report() : answer_apart(text, -1);
    if (send(3, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
  }
}

// A birth probe that tells something else than it sees. The real one runs in a child with the same
// three descriptors; what it says is changed on the way.
int run_lying_probe(const std::string& from, const std::string& to) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0) return 1;
  if (fork() == 0) {
    dup2(pair[1], 0);
    close(pair[0]);
    close(pair[1]);
    return agent::run_probe(agent::exec_filter()).ok() ? 0 : 1;
  }
  close(pair[1]);
  std::string facts(1 << 17, '\0');
  ssize_t count = recv(pair[0], facts.data(), facts.size(), 0);
  if (count != 1 || facts[0] != agent::kProbeHere) return 1;
  count = recv(pair[0], facts.data(), facts.size(), 0);
  if (count <= 0) return 1;
  facts.resize(static_cast<size_t>(count));
  close(pair[0]);
  if (from == "descriptor" && dup(0) < 0) return 1;
  if (size_t at = facts.find(from); at != facts.npos) facts.replace(at, from.size(), to);
  char released;
  if (send(0, &agent::kProbeHere, 1, 0) != 1) return 1;
  return send(0, facts.data(), facts.size(), 0) > 0 && recv(0, &released, 1, 0) >= 0 ? 0 : 1;
}

// Tests choose the lie by the nonce: "LIE|from|to", padded with '|'.
std::vector<std::string> chosen_lie() {
  agent::BirthRecord birth = {};
  if (pread(5, &birth, sizeof birth, 0) != sizeof birth) return {};
  std::string text(birth.nonce.begin(), birth.nonce.end());
  std::vector<std::string> parts(1);
  for (char letter : text) {
    if (letter == '|')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts.size() >= 3 && parts[0] == "LIE" ? parts : std::vector<std::string>();
}

Result<agent::Launched> start_lying_probe(agent::Launcher& launcher, const agent::Leaf& leaf,
                                          const std::vector<std::string>& lie) {
  if (lie[1] == "stand-in") {  // process 1 speaks for the probe
    char never;
    if (send(11, &agent::kProbeHere, 1, 0) == 1)
      while (recv(11, &never, 1, 0) < 0) continue;
    return Error::from_errno("stand-in", EPERM);
  }
  agent::Start start = {
      .arguments = {"/proc/self/exe", "lie", lie[1], lie[2]}, .environment = {}, .directory = "/"};
  std::string payload = agent::encode(1, start).substr(agent::kHeaderBytes);
  return launcher.launch(leaf, start, payload, 11);
}

// The real birth probe, without which there is no receipt and no isolate.
bool give_receipt() {
  rlimit files;  // the launcher raises its own
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return false;
  auto launcher = agent::Launcher::create(Fd(has_spawner() ? dup(6) : -1));
  agent::Leaf leaf(4, 0);
  if (!launcher) return false;
  auto lie = chosen_lie();
  auto launched = lie.empty() ? agent::start_probe(*launcher, leaf, Fd(11))
                              : start_lying_probe(*launcher, leaf, lie);
  if (!launched || !linux::wait_for_exit(launched->pidfd.get()).ok()) return false;
  return setrlimit(RLIMIT_NOFILE, &files) == 0 && leaf.remove() == agent::Leaf::Removal::kRemoved;
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "end") return 0;
  if (mode == "lie" && argc == 4) return run_lying_probe(argv[2], argv[3]);
  if (mode == "spawner") {
    if (!agent::pass_gate(agent::kSpawnersGateFd).ok()) return 1;
    run_spawner();
    return 0;
  }
  if (!give_receipt()) return 1;
  while (true) {
    Fd peer(accept4(3, nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return 1;
    char question[256];
    ssize_t count = read(peer.get(), question, sizeof question);
    if (count <= 0) continue;
    (void)write_all(peer.get(), answer_to(std::string(question, static_cast<size_t>(count))));
  }
}
