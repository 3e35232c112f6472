#include "linux/heartbeat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/unix_socket.h"

namespace atl::linux {
namespace {

constexpr int kMaxAskers = 16;  // that wait at the same time
constexpr char kBeat = 1;
// Who is silent for longer is asked anew: the question may stand with a child of a process that was
// killed, which has the socket of its parent still.
constexpr HeartbeatWatch::Time kAskAnew{2'000};

Result<Fd> open_reserve() { return open_file("/dev/null", O_PATH); }

}  // namespace

Result<Heartbeat> Heartbeat::open_at(int directory, const std::string& program, uid_t asker) {
  std::string name = heartbeat_name(program);
  if (unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("unlink an old " + name);
  ATOLL_TRY(Fd reserve, open_reserve());
  ATOLL_TRY(Fd listener, listen_at(directory, name, SOCK_STREAM | SOCK_NONBLOCK, kMaxAskers));
  if (asker != geteuid() && fchownat(directory, name.c_str(), asker, -1u, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown " + name);
  return Heartbeat(std::move(listener), std::move(reserve));
}

void Heartbeat::beat() {
  // So many that askers who come faster than they are answered do not hold up the loop.
  for (int i = 0; i < kMaxAskers; ++i) {
    Fd asker(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    bool exhausted = !asker && (errno == EMFILE || errno == ENFILE);
    if (exhausted) {
      reserve_.reset();
      asker = Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    }
    // An asker that has gone needs no answer.
    if (asker) (void)send(asker.get(), &kBeat, sizeof kBeat, MSG_NOSIGNAL | MSG_DONTWAIT);
    bool answered = static_cast<bool>(asker);
    asker.reset();
    if (!reserve_)
      if (auto reserve = open_reserve()) reserve_ = std::move(*reserve);
    if (!answered) return;
  }
}

void Heartbeat::close() {
  listener_.reset();
  reserve_.reset();
}

void HeartbeatWatch::reset() {
  question_.reset();
  silence_ = absence_ = Time(0);
  has_answered_ = false;
}

void HeartbeatWatch::look(Time passed) {
  if (question_) judge(passed);
  if (question_) passed = Time(0);  // counted
  if (silence_ >= kAskAnew) question_.reset();
  if (!question_) ask(passed);
}

void HeartbeatWatch::judge(Time passed) {
  char byte = 0;
  ssize_t count = recv(question_.get(), &byte, sizeof byte, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    silence_ += passed;
    return;
  }
  // Without the byte it has come to nothing: the process has ended.
  if (count == 1) has_answered_ = true;
  silence_ = Time(0);
  question_.reset();
}

void HeartbeatWatch::ask(Time passed) {
  auto directory = open_file(directory_, O_PATH | O_DIRECTORY);
  auto asked = directory ? connect_at(directory->get(), name_, SOCK_STREAM | SOCK_NONBLOCK)
                         : Result<Fd>(std::move(directory).error());
  if (asked) {
    question_ = std::move(*asked);
    absence_ = Time(0);
    return;
  }
  int why = asked.error().system_errno();
  if (why == ENOENT || why == ECONNREFUSED) {
    silence_ = Time(0);
    absence_ += passed;
  } else if (why == EAGAIN) {  // so many ask that there is no room for one more
    silence_ += passed;
  }
  // Else it is we who cannot ask, which says nothing about the process.
}

Result<void> ask_heartbeat(const std::string& directory, const std::string& program,
                           std::chrono::milliseconds limit) {
  auto folder = open_file(directory, O_PATH | O_DIRECTORY);
  auto asked = folder
                   ? connect_at(folder->get(), heartbeat_name(program), SOCK_STREAM | SOCK_NONBLOCK)
                   : Result<Fd>(std::move(folder).error());
  int why = asked ? 0 : asked.error().system_errno();
  if (why == ENOENT || why == ECONNREFUSED)
    return Error(Code::kNotFound, program + " is not there");
  if (!asked && why != EAGAIN) return std::move(asked).error();
  pollfd waiting = {.fd = asked ? asked->get() : -1, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, static_cast<int>(limit.count())) > 0) return {};
  return Error(Code::kTimeout, program + " does not answer");
}

}  // namespace atl::linux
