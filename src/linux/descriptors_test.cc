#include "linux/descriptors.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace atl::linux {
namespace {

bool is_null_device(int fd) {
  char target[64] = {};
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  return readlink(path.c_str(), target, sizeof target - 1) > 0 &&
         std::string(target) == "/dev/null";
}

char read_letter(int fd) {
  char letter = 0;
  return read(fd, &letter, 1) == 1 ? letter : '-';
}

// Exit status 0, or the number of the first expectation that fails.
int place_two_that_are_in_each_others_way() {
  int pipes[2][2];
  if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0) return 1;
  for (auto& pair : pipes)
    for (int& end : pair)
      if ((end = fcntl(end, F_DUPFD, 32)) < 0) return 1;
  if (dup2(pipes[0][0], 3) != 3 || dup2(pipes[1][0], 4) != 4 || dup2(1, 5) != 5) return 2;
  if (write(pipes[0][1], "a", 1) != 1 || write(pipes[1][1], "b", 1) != 1) return 3;
  Placement placements[] = {{3, 4}, {4, 3}, {-1, 5}};
  if (!place_descriptors(placements, 6).ok()) return 4;
  if (read_letter(4) != 'a' || read_letter(3) != 'b') return 5;
  if (fcntl(5, F_GETFD) >= 0 || fcntl(6, F_GETFD) >= 0) return 6;
  if (fcntl(3, F_GETFD) != 0 || fcntl(4, F_GETFD) != 0) return 7;
  for (int number = 7; number < 64; ++number)
    if (int flags = fcntl(number, F_GETFD); flags >= 0 && flags != FD_CLOEXEC) return 8;
  return is_null_device(0) && is_null_device(2) ? 0 : 9;
}

TEST(Descriptors, GetTheirNumbersAndNothingElseSurvivesAnExecve) {
  pid_t child = fork();
  if (child == 0) _exit(place_two_that_are_in_each_others_way());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

}  // namespace
}  // namespace atl::linux
