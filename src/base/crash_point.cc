#include "base/crash_point.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace atl {

bool crash_points_watched = false;

namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr int kExitLikeKilled = 128 + SIGKILL;

// Plain memory, because statics with constructors are not ours; written once, before any thread.
int directory = -1;
char program_name[kMaxNameBytes];
char armed_name[kMaxNameBytes];

void keep(char (&into)[kMaxNameBytes], std::string_view text) {
  size_t length = std::min(text.size(), kMaxNameBytes - 1);
  memcpy(into, text.data(), length);
  into[length] = '\0';
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  // The first process of a pid namespace does not hear its own signals.
  _exit(kExitLikeKilled);
}

}  // namespace

void watch_crash_directory(const std::string& run_directory, std::string_view program) {
  directory = open((run_directory + "/crash").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  crash_points_watched = directory >= 0;
  keep(program_name, program);
}

void arm_crash_point(std::string_view name) {
  keep(armed_name, name);
  crash_points_watched = !name.empty();
}

std::string take_armed_point(std::string_view program) {
  if (directory < 0) return "";
  DIR* entries = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entries == nullptr) return "";
  std::string prefix = std::string(program) + ".", found;
  while (const dirent* entry = readdir(entries)) {
    std::string_view name = entry->d_name;
    if (!name.starts_with(prefix) || unlinkat(directory, entry->d_name, 0) != 0) continue;
    found = name.substr(prefix.size());
    break;
  }
  closedir(entries);
  return found;
}

void reach_crash_point(std::string_view name) {
  if (name == armed_name) die();
  if (directory < 0) return;
  std::string file = std::string(program_name) + "." + std::string(name);
  if (unlinkat(directory, file.c_str(), 0) == 0) die();
}

}  // namespace atl
