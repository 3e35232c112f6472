// What several tests of this folder need: a directory that goes away, and a small real program that
// holds a lock, standing in for atolld and the warden.
#pragma once

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/eventually.h"
#include "cli/state_directory.h"

namespace atl::cli {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/atoll-cli-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempDir() { EXPECT_TRUE(remove_tree(path_).ok()); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline std::vector<pid_t> read_pids(const std::string& path) {
  std::ifstream file(path);
  std::vector<pid_t> pids;
  for (pid_t pid; file >> pid;) pids.push_back(pid);
  return pids;
}

inline constexpr const char* kPython = "/usr/bin/python3";

// Locks argv[1], appends its pid to argv[2], then waits.
inline constexpr const char* kHoldLock =
    "import fcntl, os, sys, time\n"
    "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
    "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "os.write(os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600),\n"
    "         b'%d\\n' % os.getpid())\n"
    "time.sleep(600)\n";

}  // namespace atl::cli
