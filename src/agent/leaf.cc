#include "agent/leaf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace atl::agent {

Result<void> Leaf::create() const {
  std::string name = std::to_string(number_);
  if (mkdirat(parent_, name.c_str(), 0755) != 0) return Error::system("mkdir cgroup " + name);
  return {};
}

Result<Fd> Leaf::open_directory() const {
  return open_at(parent_, std::to_string(number_), O_PATH | O_DIRECTORY);
}

Result<void> Leaf::kill() const {
  return write_file_at(parent_, std::to_string(number_) + "/cgroup.kill", "1");
}

Leaf::Removal Leaf::remove() const {
  std::string name = std::to_string(number_);
  if (unlinkat(parent_, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
    return Removal::kRemoved;
  auto events = read_file_at(parent_, name + "/cgroup.events");
  bool populated = events.ok() && events->find("populated 1") != std::string::npos;
  return populated ? Removal::kPopulated : Removal::kBusy;
}

Result<std::string> Leaf::read(const char* file) const {
  return read_file_at(parent_, std::to_string(number_) + "/" + file);
}

Result<Fd> Leaf::open_events() const {
  return open_at(parent_, std::to_string(number_) + "/cgroup.events", O_RDONLY);
}

}  // namespace atl::agent
