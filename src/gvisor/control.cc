#include "gvisor/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gvisor/sentry.h"
#include "linux/unix_socket.h"

namespace atl::gvisor {
namespace {

// All that a sandbox may have written may have to be copied.
constexpr int kPatienceMs = 60'000;
constexpr size_t kMaxAnswerBytes = 4096;

Result<void> await_input(int fd) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  int count = poll(&waiting, 1, kPatienceMs);
  if (count < 0) return Error::system("wait for the sentry");
  return count > 0 ? Result<void>() : Error::from_errno("wait for the sentry", ETIMEDOUT);
}

}  // namespace

Result<Control> Control::connect(int directory, const char* name) {
  ATOLL_TRY(Fd socket, linux::connect_at(directory, name, SOCK_STREAM));
  return Control(std::move(socket));
}

Result<void> Control::call(const std::string& text, std::span<const int> fds) {
  ATOLL_TRY_VOID(linux::send_message(socket_.get(), text, fds));
  ATOLL_TRY_VOID(await_input(socket_.get()));
  char bytes[kMaxAnswerBytes];
  ssize_t count = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  std::string answer(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  if (is_success(answer)) return {};
  return Error(Code::kUnavailable, "the sentry refused " + text + ": " + answer, EIO);
}

}  // namespace atl::gvisor
