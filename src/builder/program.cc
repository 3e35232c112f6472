#include "builder/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

namespace atl::builder {
namespace {

constexpr size_t kMaxOutputBytes = 1 << 20;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> start(const Program& program, int output) {
  std::vector<char*> arguments = pointers_to(program.arguments);
  std::vector<char*> environment = pointers_to(program.environment);
  pid_t pid = fork();
  if (pid < 0) return Error::system("fork");
  if (pid > 0) return pid;
  if (output >= 0 && dup2(output, STDOUT_FILENO) < 0) _exit(127);
  execve(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

Result<void> wait_for(pid_t pid, const std::string& name) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Error::system("wait for " + name);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string how = WIFEXITED(status) ? "ended with " + std::to_string(WEXITSTATUS(status))
                                      : "was ended by signal " + std::to_string(WTERMSIG(status));
  return Error(Code::kUnavailable, name + " " + how + "; its log says why");
}

}  // namespace

Result<void> run_program(const Program& program) {
  ATOLL_TRY(pid_t pid, start(program, -1));
  return wait_for(pid, program.arguments[0]);
}

Result<std::string> read_program(const Program& program) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd reader(fds[0]), writer(fds[1]);
  ATOLL_TRY(pid_t pid, start(program, writer.get()));
  writer.reset();
  Result<std::string> text = read_all(reader.get(), kMaxOutputBytes);
  reader.reset();
  ATOLL_TRY_VOID(wait_for(pid, program.arguments[0]));
  return text;
}

}  // namespace atl::builder
