#include "microvm/guest_disks.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <set>

#include "base/file.h"
#include "microvm/initramfs.h"

namespace atl::microvm {
namespace {

constexpr int kPatience = 1000;
constexpr unsigned kPauseMicroseconds = 5'000;

// Sorted; empty where there is no such directory.
std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory.c_str()), closedir);
  if (!entries) return names;
  while (const dirent* entry = readdir(entries.get()))
    if (entry->d_name[0] != '.') names.insert(entry->d_name);
  return names;
}

std::string line_of(const std::string& file) {
  auto text = read_file(file);
  if (!text) return "";
  return text->substr(0, text->find('\n'));
}

std::optional<std::string> find_port(const std::string& name) {
  const std::string ports = "/sys/class/virtio-ports";
  for (const std::string& port : names_in(ports))
    if (line_of(ports + "/" + port + "/name") == name) return "/dev/" + port;
  return std::nullopt;
}

bool is_connected(int port) {
  pollfd poll_fd = {.fd = port, .events = POLLIN, .revents = 0};
  return poll(&poll_fd, 1, 0) >= 0 && (poll_fd.revents & POLLHUP) == 0;
}

}  // namespace

Result<void> load_modules() {
  for (const std::string& name : names_in(kGuestModules)) {
    std::string path = std::string(kGuestModules) + "/" + name;
    ATOLL_TRY(Fd file, open_file(path, O_RDONLY));
    if (syscall(SYS_finit_module, file.get(), "", 0) != 0 && errno != EEXIST)
      return Error::system("load " + path);
    unlink(path.c_str());
  }
  return {};
}

std::optional<std::string> find_disk(const std::string& serial) {
  for (const std::string& name : names_in("/sys/block"))
    if (line_of("/sys/block/" + name + "/serial") == serial) return "/dev/" + name;
  return std::nullopt;
}

Result<Fd> open_port(const std::string& name) {
  Fd port;
  for (int i = 0; i < kPatience; ++i) {
    std::optional<std::string> path = port ? std::nullopt : find_port(name);
    if (path) {
      ATOLL_TRY(port, open_file(*path, O_RDWR | O_NONBLOCK));
    }
    if (port && is_connected(port.get())) return port;
    usleep(kPauseMicroseconds);
  }
  return Error::from_errno("find the port " + name, ETIMEDOUT);
}

}  // namespace atl::microvm
