// sudo inside a sandbox: asks the agent to start the command as another user, in the same exec and
// on the same descriptors, and ends as the command ends. It has no power itself and needs none:
// nothing here is setuid. See agent/sudo_protocol.h.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/sudo_protocol.h"
#include "base/fd.h"
#include "base/file.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"
#include "sudo/command_line.h"

namespace atl::sudo {
namespace {

constexpr int kFailed = 1;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// Those that a caller sends to a command. Not the stop signals: they stop sudo alone.
constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

// Blocked before the request, so that none comes between it and the wait.
Result<Fd> take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : kForwarded) sigaddset(&signals, number);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return Error::system("block signals");
  Fd fd(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd) return Error::system("signalfd");
  return fd;
}

Result<Fd> connect_to_agent() {
  Fd connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection) return Error::system("socket");
  int on = 1;  // what is sent says by whom
  if (setsockopt(connection.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return Error::system("SO_PASSCRED");
  sockaddr_un address = {AF_UNIX, {}};
  std::string_view(agent::kSudoSocket).copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Error::system(std::string("connect to ") + agent::kSudoSocket);
  return connection;
}

// A stream that was closed is nothing for the command too.
Result<void> open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
      return Error::system("open standard stream");
  return {};
}

Result<void> ask(int connection, const agent::Start& start) {
  constexpr uint32_t kNoExec = 0;
  std::string payload = agent::encode(kNoExec, start).substr(agent::kHeaderBytes);
  ATOLL_TRY(Fd file, linux::make_sealed_memory("sudo", payload));
  int fds[agent::kSudoFds] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, file.get()};
  agent::SudoRequest request = {agent::kSudoMagic};
  std::span<const char> bytes(reinterpret_cast<const char*>(&request), sizeof request);
  return linux::send_message(connection, bytes, fds);
}

void forward_signal(int signals, int connection) {
  signalfd_siginfo info = {};
  if (read(signals, &info, sizeof info) != sizeof info) return;
  agent::SudoSignal message = {static_cast<uint8_t>(info.ssi_signo)};
  // A command that has ended takes none; the agent's word of that is on its way.
  (void)send(connection, &message, sizeof message, MSG_NOSIGNAL);
}

Result<agent::SudoEnd> await_end(int connection, int signals) {
  pollfd polls[] = {{connection, POLLIN, 0}, {signals, POLLIN, 0}};
  while (true) {
    if (poll(polls, 2, -1) < 0 && errno != EINTR) return Error::system("poll");
    if (polls[1].revents != 0) forward_signal(signals, connection);
    if (polls[0].revents == 0) continue;
    agent::SudoEnd end = {};
    ssize_t count = recv(connection, &end, sizeof end, 0);
    // Said once when the agent has left a signal unread; the end comes behind it.
    if (count < 0 && (errno == ECONNRESET || errno == EINTR)) continue;
    if (count != sizeof end) return Error(Code::kUnavailable, "the agent hung up", EPIPE);
    end.operation.back() = '\0';
    return end;
  }
}

[[noreturn]] void die_of(int signal_number) {
  signal(signal_number, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal_number);
  raise(signal_number);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  _exit(128 + signal_number);
}

int explain(const agent::SudoEnd& end, const agent::Start& start) {
  std::string_view operation = end.operation.data();
  bool command = end.ending == agent::SudoEnding::kNotExecuted && operation == "exec";
  if (command && end.system_errno == ENOENT) {
    fprintf(stderr, "sudo: %s: command not found\n", start.arguments[0].c_str());
    return kNotFound;
  }
  if (end.ending == agent::SudoEnding::kNotExecuted && operation == agent::kFindUser) {
    fprintf(stderr, "sudo: unknown user %s\n", start.user.c_str());
    return kFailed;
  }
  std::string subject(operation);
  if (end.ending == agent::SudoEnding::kNotExecuted)
    subject = command                   ? start.arguments[0]
              : start.directory.empty() ? "home of " + start.user
                                        : start.directory;
  fprintf(stderr, "sudo: %s: %s\n", subject.c_str(), strerror(end.system_errno));
  return command ? kNotExecutable : kFailed;
}

Result<int> run(const CommandLine& line) {
  ATOLL_TRY_VOID(open_standard_streams());
  char* directory = getcwd(nullptr, 0);
  if (directory == nullptr) return Error::system("find the working directory");
  Caller caller = {getuid(), getgid(), {}, directory};
  for (char** variable = environ; *variable != nullptr; ++variable)
    caller.environment.push_back(*variable);
  agent::Start start = make_start(line, caller);
  ATOLL_TRY(Fd signals, take_signals());
  ATOLL_TRY(Fd connection, connect_to_agent());
  ATOLL_TRY_VOID(ask(connection.get(), start));
  ATOLL_TRY(agent::SudoEnd end, await_end(connection.get(), signals.get()));
  if (end.ending == agent::SudoEnding::kExited) return static_cast<int>(end.status);
  if (end.ending == agent::SudoEnding::kSignaled) die_of(end.status);
  return explain(end, start);
}

}  // namespace
}  // namespace atl::sudo

int main(int argc, char** argv) {
  using namespace atl;
  auto line = sudo::parse_command_line({argv + 1, argv + argc});
  auto usage = static_cast<int>(sudo::kUsage.size());
  if (!line) {
    fprintf(stderr, "sudo: %s\n%.*s\n", line.error().message().c_str(), usage, sudo::kUsage.data());
    return sudo::kFailed;
  }
  if (line->mode == sudo::CommandLine::Mode::kNothing) return 0;
  if (line->mode == sudo::CommandLine::Mode::kVersion) return puts("atoll sudo " ATOLL_VERSION) < 0;
  if (line->mode == sudo::CommandLine::Mode::kHelp)
    return printf("%.*s\n", usage, sudo::kUsage.data()) < 0;
  auto ended = sudo::run(*line);
  if (ended) return *ended;
  fprintf(stderr, "sudo: %s\n", ended.error().message().c_str());
  return sudo::kFailed;
}
