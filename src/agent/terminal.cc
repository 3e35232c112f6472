#include "agent/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

namespace atl::agent {
namespace {

constexpr char kEndOfInput = 4;  // ^D, where the program has set none

Result<Fd> open_master() {
  ATOLL_TRY(Fd master, open_file("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
  struct stat status;
  if (fstat(master.get(), &status) != 0) return Error::system("stat /dev/ptmx");
  // gVisor's has no number, but answers as one.
  unsigned number;
  bool known = status.st_rdev == makedev(5, 2) ||
               (status.st_rdev == 0 && ioctl(master.get(), TIOCGPTN, &number) == 0);
  if (!S_ISCHR(status.st_mode) || !known)
    return Error::from_errno("/dev/ptmx is not what makes terminals", ENOTTY);
  return master;
}

// By the master, not by name: no path is looked up in what the sandbox may change. Only a kernel
// that cannot (gVisor's) has the name, of a mount that nobody inside can cover.
Fd open_program_end(int master) {
  constexpr int kFlags = O_RDWR | O_NOCTTY | O_CLOEXEC;
  Fd end(ioctl(master, TIOCGPTPEER, kFlags));
  unsigned number = 0;
  if (end || errno != ENOTTY || ioctl(master, TIOCGPTN, &number) != 0) return end;
  return Fd(open(("/dev/pts/" + std::to_string(number)).c_str(), kFlags));
}

winsize as_winsize(const TerminalSize& size) { return {size.rows, size.columns, 0, 0}; }

// So that erasing a character takes all its bytes.
int expect_utf8(int terminal) {
  termios modes;
  if (tcgetattr(terminal, &modes) != 0) return -1;
  modes.c_iflag |= IUTF8;
  return tcsetattr(terminal, TCSANOW, &modes);
}

}  // namespace

Result<Terminal> open_terminal(const TerminalSize& size) {
  Terminal terminal;
  ATOLL_TRY(terminal.master, open_master());
  int master = terminal.master.get();
  int unlock = 0;
  if (ioctl(master, TIOCSPTLCK, &unlock) != 0) return Error::system("unlock terminal");
  terminal.program_end = open_program_end(master);
  if (!terminal.program_end) return Error::system("open terminal");
  winsize given = as_winsize(size);
  if (ioctl(master, TIOCSWINSZ, &given) != 0) return Error::system("set terminal size");
  if (expect_utf8(terminal.program_end.get()) != 0) return Error::system("set terminal modes");
  return terminal;
}

void resize_terminal(int master, const TerminalSize& size) {
  winsize given = as_winsize(size);
  // A terminal has no size that could be refused.
  (void)ioctl(master, TIOCSWINSZ, &given);
}

std::string end_of_input(int master, char last_byte) {
  termios modes;
  // Of the other end: a master has none of its own that count.
  if (tcgetattr(master, &modes) != 0) return {kEndOfInput};
  bool by_lines = (modes.c_lflag & ICANON) != 0;
  auto character = static_cast<char>(modes.c_cc[VEOF]);
  if (character == _POSIX_VDISABLE) character = kEndOfInput;
  return std::string(by_lines && last_byte != '\n' && last_byte != '\r' ? 2 : 1, character);
}

int take_terminal(int program_end, uid_t owner) {
  // The group stays that of the mount; programs of other users must not type or read here.
  if (fchown(program_end, owner, static_cast<gid_t>(-1)) != 0) return -1;
  return ioctl(program_end, TIOCSCTTY, 0);
}

}  // namespace atl::agent
