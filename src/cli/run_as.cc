#include "cli/run_as.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace atl::cli {
namespace {

constexpr size_t kMaxAnswerBytes = 64ull << 20;
constexpr char kDone = 'D';
constexpr char kFailed = 'F';  // then the code, then the message

// Groups first and uid last: each step needs the privilege that the next one gives away.
Result<void> become(const Identity& identity, pid_t parent) {
  if (setgroups(0, nullptr) != 0) return Error::system("setgroups");
  if (setresgid(identity.gid, identity.gid, identity.gid) != 0) return Error::system("setresgid");
  if (setresuid(identity.uid, identity.uid, identity.uid) != 0) return Error::system("setresuid");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("no_new_privs");
  umask(077);
  // After the ids, whose change forgets it: nobody may go on working for a parent that was killed.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return Error::system("PR_SET_PDEATHSIG");
  if (getppid() != parent) return Error(Code::kCancelled, "the parent has ended");
  return {};
}

[[noreturn]] void answer(int pipe, const Identity& identity, pid_t parent,
                         const std::function<Result<std::string>()>& work) {
  auto became = become(identity, parent);
  Result<std::string> result = became ? work() : Result<std::string>(became.error());
  std::string text = result ? kDone + *result
                            : std::string{kFailed, static_cast<char>(result.error().code())} +
                                  result.error().message();
  _exit(write_all(pipe, text) ? 0 : 1);
}

Result<std::string> parse(const std::string& text) {
  if (!text.empty() && text[0] == kDone) return text.substr(1);
  auto code = text.size() < 2 ? Code::kSystem : static_cast<Code>(text[1]);
  if (text.size() < 2 || text[0] != kFailed || code > Code::kSystem)
    return Error(Code::kSystem, "a process that was to look at files ended without an answer");
  return Error(code, text.substr(2));
}

}  // namespace

Result<std::string> run_as(const Identity& identity,
                           const std::function<Result<std::string>()>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::system("pipe");
  Fd reader(ends[0]), writer(ends[1]);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return Error::system("fork");
  if (pid == 0) answer(writer.get(), identity, parent, work);
  writer.reset();
  auto text = read_all(reader.get(), kMaxAnswerBytes);
  reader.reset();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  if (!text) return std::move(text).error();
  return parse(*text);
}

}  // namespace atl::cli
