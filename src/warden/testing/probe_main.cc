// The tests' agent: process 1 of an isolate that answers one question per connection about what it
// sees.
//   report              everything about this process, as "key: value" lines
//   spawner             the same, asked of the spawner
//   fill PATH BYTES     writes; answers bytes written and the errno that stopped it
//   read PATH           the file
//   names PATH          what is in the directory
//   leaf                starts a process in a new group under descriptor 4 and reads its cgroup
//   up                  what ".." of descriptor 4 leads to
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

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

std::string ask_spawner() {
  if (send(6, "?", 1, MSG_NOSIGNAL) != 1) return "send " + std::to_string(errno);
  std::string answer(65536, '\0');
  ssize_t count = recv(6, answer.data(), answer.size(), 0);
  return count < 0 ? "recv " + std::to_string(errno) : answer.substr(0, static_cast<size_t>(count));
}

std::string answer_to(const std::string& question) {
  if (question == "report") return report();
  if (question == "spawner") return ask_spawner();
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

void run_spawner() {
  char question;
  while (recv(3, &question, 1, 0) == 1) {
    std::string answer = report();
    if (send(3, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "spawner") {
    run_spawner();
    return 0;
  }
  while (true) {
    Fd peer(accept4(3, nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer) return 1;
    char question[256];
    ssize_t count = read(peer.get(), question, sizeof question);
    if (count <= 0) continue;
    (void)write_all(peer.get(), answer_to(std::string(question, static_cast<size_t>(count))));
  }
}
