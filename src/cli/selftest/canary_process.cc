#include "cli/selftest/canary_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ids.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"

namespace atl::cli::selftest {
namespace {

constexpr int kAnswerMs = 30'000;

std::string draw_secret() {
  unsigned char bytes[16];
  fill_random(bytes);
  std::string text = "canary-";
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

[[noreturn]] void live(int socket, const std::string& secret) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  prctl(PR_SET_NAME, CanaryProcess::kName, 0, 0, 0);
  char question;
  while (recv(socket, &question, 1, 0) == 1)
    if (send(socket, secret.data(), secret.size(), MSG_NOSIGNAL) < 0) break;
  _exit(0);
}

}  // namespace

Result<CanaryProcess> CanaryProcess::start() {
  CanaryProcess canary;
  canary.secret_ = draw_secret();
  ATOLL_TRY(auto pair, linux::make_socket_pair(SOCK_SEQPACKET));
  canary.pid_ = fork();
  if (canary.pid_ < 0) return Error::system("fork the canary process");
  if (canary.pid_ == 0) {
    pair.ours.reset();
    live(pair.theirs.get(), canary.secret_);
  }
  canary.socket_ = std::move(pair.ours);
  ATOLL_TRY(canary.pidfd_, linux::open_pidfd(canary.pid_));
  return canary;
}

CanaryProcess::~CanaryProcess() {
  if (!pidfd_) return;
  socket_.reset();  // its end of file lets the process end
  (void)linux::wait_for_exit(pidfd_.get());
}

std::optional<std::string> CanaryProcess::find_harm() const {
  pollfd ended = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, 0) != 0) return "the canary process was ended";
  pollfd answered = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
  char answer[256];
  // Its socket closes a moment before its pidfd tells of the end.
  if (send(socket_.get(), "?", 1, MSG_NOSIGNAL) != 1) return "the canary process was ended";
  if (poll(&answered, 1, kAnswerMs) != 1) return "the canary process does not answer";
  ssize_t length = recv(socket_.get(), answer, sizeof answer, 0);
  if (length <= 0) return "the canary process was ended";
  if (std::string_view(answer, static_cast<size_t>(length)) != secret_)
    return "the memory of the canary process was changed";
  return std::nullopt;
}

}  // namespace atl::cli::selftest
