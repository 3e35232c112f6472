#include "cli/raw_terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace atl::cli {
namespace {

// For the handler, which has nothing else to reach: fd is -1 while the terminal is as it was.
struct Saved {
  volatile sig_atomic_t fd = -1;
  termios state{};
};
Saved saved;

constexpr int kEnds[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGQUIT, SIGSYS};

void put_back() {
  int fd = saved.fd;
  saved.fd = -1;
  if (fd < 0) return;
  // tcsetattr() of a background process would stop it.
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  tcsetattr(fd, TCSANOW, &saved.state);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void die(int number) {
  put_back();
  // SA_RESETHAND put the default back, which ends the process now.
  raise(number);
}

}  // namespace

Result<RawTerminal> RawTerminal::enter(int fd) {
  ATOLL_CHECK(saved.fd < 0);
  if (tcgetattr(fd, &saved.state) != 0) return Error::system("read the state of the terminal");
  struct sigaction action {};
  action.sa_handler = die;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (int number : kEnds) sigaction(number, &action, nullptr);
  saved.fd = fd;
  RawTerminal terminal(fd);
  termios raw = saved.state;
  cfmakeraw(&raw);
  if (tcsetattr(fd, TCSANOW, &raw) != 0) return Error::system("make the terminal raw");
  return terminal;
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RawTerminal::~RawTerminal() {
  if (fd_ < 0) return;
  put_back();
  for (int number : kEnds) signal(number, SIG_DFL);
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  constexpr unsigned kMost = 1000;
  return {std::min<unsigned>(size.ws_col, kMost), std::min<unsigned>(size.ws_row, kMost)};
}

}  // namespace atl::cli
