// What tests/wire/slow_test.py installs as atolld: the real one beside it, with less time for slow
// peers, which is no option of `atoll up`.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <climits>

int main(int count, char** words) {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) {
    perror("find the directory of atolld");
    return 1;
  }
  std::string program = std::string(path) + "-itself";
  std::string option = "--slow-peer-time", milliseconds = "5000";
  std::vector<char*> arguments(words, words + count);
  arguments.insert(arguments.end(), {option.data(), milliseconds.data(), nullptr});
  execv(program.c_str(), arguments.data());
  perror("start atolld");
  return 1;
}
