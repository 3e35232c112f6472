#include "microvm/lent_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/frame.h"
#include "agent/still_files.h"
#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

constexpr int kPatienceMs = 60'000;

Result<void> await_input(int fd) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPatienceMs) == 1) return {};
  return Error::from_errno("await memory", ETIMEDOUT);
}

}  // namespace

Result<void> lend_memory(int listener, int memory) {
  while (true) {
    pollfd waiting = {.fd = listener, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR) return Error::system("poll");
    Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    bool none = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!socket && !none) return Error::system("accept");
    char byte = agent::kLayDownNote;
    int lent[] = {memory};
    if (socket) (void)linux::send_message(socket.get(), {&byte, 1}, lent, MSG_DONTWAIT);
  }
}

Result<Lent> await_memory(int listener) {
  ATOLL_TRY_VOID(await_input(listener));
  Lent lent = {};
  lent.socket = Fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!lent.socket) return Error::system("accept");
  ATOLL_TRY_VOID(await_input(lent.socket.get()));
  char frame[agent::kHeaderBytes];
  std::span<Fd> fds(&lent.memory, 1);
  ATOLL_TRY(linux::Received received, linux::receive_message(lent.socket.get(), frame, fds));
  struct stat status;
  int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
  bool good = received.bytes == sizeof frame && lent.memory &&
              (fcntl(lent.memory.get(), F_GET_SEALS) & seals) == seals &&
              fstat(lent.memory.get(), &status) == 0;
  if (!good) return Error(Code::kCorrupt, "what was brought is no sealed memory");
  lent.bytes = static_cast<uint64_t>(status.st_size);
  return lent;
}

Result<void> await_begin(const Lent& lent) {
  char note = 0;
  ssize_t count = 0;
  do count = recv(lent.socket.get(), &note, 1, 0);
  while (count < 0 && errno == EINTR);
  if (count < 0) return Error::system("await the beginning");
  if (count == 0) return Error(Code::kUnavailable, "nobody wants it to begin any more");
  if (note != agent::kBeginNote) return Error(Code::kCorrupt, "no word to begin");
  return {};
}

}  // namespace atl::microvm
