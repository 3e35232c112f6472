#include "warden/service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/crash_point.h"
#include "base/log.h"
#include "linux/unix_socket.h"
#include "warden/errand.h"
#include "warden/freezer.h"

namespace atl::warden {
namespace {

constexpr uint64_t kNoConnection = 0;
constexpr const char* kSocketName = "warden.sock";
constexpr timeval kSendTimeout = {.tv_sec = 5, .tv_usec = 0};

// A client that has gone away misses its answer; it learns what exists by kList.
void send_message(int socket, const std::string& message, std::span<const int> fds = {}) {
  auto sent = linux::send_message(socket, message, fds);
  if (!sent) log_warning("reply was not sent", {sent.error()});
}

}  // namespace

Result<void> Service::run() {
  ATOLL_TRY_VOID(open_sockets());
  log_info("serving", {{"run_dir", host_.run_dir}, {"client_uid", host_.client_uid}});
  while (!stopping_ || !helpers_.empty()) ATOLL_TRY_VOID(wait_and_dispatch());
  pool_watch_.stop();
  log_info("stopped");
  return {};
}

Result<void> Service::open_sockets() {
  // Left by a warden that was killed; the lock on R/warden.lock proves that it is dead.
  if (unlinkat(host_.run.get(), kSocketName, 0) != 0 && errno != ENOENT)
    return Error::system("unlink an old socket");
  sigset_t handled;
  sigemptyset(&handled);
  for (int signal_number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&handled, signal_number);
  if (sigprocmask(SIG_BLOCK, &handled, nullptr) != 0) return Error::system("block signals");
  signals_ = Fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Error::system("signalfd");
  ATOLL_TRY(listener_, linux::listen_at(host_.run.get(), kSocketName,
                                        SOCK_SEQPACKET | SOCK_NONBLOCK, kMaxConnections));
  if (fchownat(host_.run.get(), kSocketName, host_.client_uid, -1u, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown the socket");
  // The client asks too, so that it does not wait for answers that will not come.
  ATOLL_TRY(heartbeat_,
            linux::Heartbeat::open_at(host_.run.get(), "atoll-warden", host_.client_uid));
  return {};
}

Result<void> Service::wait_and_dispatch() {
  bool listening = !stopping_ && connections_.size() < kMaxConnections;
  bool reading = !stopping_ && helpers_.size() < kMaxHelpers;
  std::vector<pollfd> waiting;
  waiting.push_back({.fd = signals_.get(), .events = POLLIN, .revents = 0});
  waiting.push_back({.fd = listening ? listener_.get() : -1, .events = POLLIN, .revents = 0});
  waiting.push_back({.fd = heartbeat_->fd(), .events = POLLIN, .revents = 0});
  size_t first_connection = waiting.size();
  std::vector<uint64_t> numbers;
  for (const Connection& connection : connections_) {
    // Not even a hang-up is wanted while we do not read: poll would return at once, again and
    // again.
    waiting.push_back(
        {.fd = reading ? connection.socket.get() : -1, .events = POLLIN, .revents = 0});
    numbers.push_back(connection.number);
  }
  int pause = std::min(pool_watch_.ms_to_look(), kernel_memory_.wait_ms());
  if (poll(waiting.data(), waiting.size(), pause) < 0) {
    if (errno == EINTR) return {};
    return Error::system("poll");
  }
  watch_pool();
  kernel_memory_.look_if_due();
  if (waiting[0].revents != 0) take_signals();
  if (waiting[1].revents != 0) accept_connection();
  if (waiting[2].revents != 0) heartbeat_->beat();
  for (size_t i = 0; i < numbers.size(); ++i) {
    int events = waiting[first_connection + i].revents;
    // Nobody waits for what one that has gone has asked for, and it may ask for the contrary now.
    if ((events & POLLHUP) != 0) close_connection(numbers[i]);
    if (events != 0 && helpers_.size() < kMaxHelpers && !stopping_) receive(numbers[i]);
  }
  return {};
}

void Service::take_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    log_info("stopping", {{"signal", info.ssi_signo}});
    stopping_ = true;
    listener_.reset();
  }
  reap();
}

void Service::reap() {
  int status = 0;
  while (true) {
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    if (pool_watch_.ended(pid, status)) continue;
    auto helper = std::find_if(helpers_.begin(), helpers_.end(),
                               [pid](const Errand& one) { return one.pid == pid; });
    if (helper == helpers_.end()) continue;  // the first process of an isolate
    Errand finished = *helper;
    helpers_.erase(helper);
    crash_point("helper.ended");
    finish_helper(finished, status);
  }
}

void Service::accept_connection() {
  Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return;  // the peer was faster in leaving
  auto peer = linux::peer_credentials(socket.get());
  if (!peer || peer->uid != host_.client_uid) {
    log_warning("refused a connection", {{"uid", peer ? static_cast<int64_t>(peer->uid) : -1}});
    return;
  }
  if (setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout) != 0) {
    log_error("refused a connection", {Error::system("SO_SNDTIMEO")});
    return;
  }
  connections_.push_back({.number = next_connection_++, .socket = std::move(socket)});
}

void Service::close_sockets() {
  listener_.reset();
  signals_.reset();
  connections_.clear();
}

void Service::watch_pool() {
  if (stopping_ || !pool_watch_.is_to_mount()) return;
  pid_t pid = fork();
  if (pid == 0) {
    close_sockets();
    _exit(pool_watch_.mount_anew());
  }
  if (pid < 0) log_error("the layer pool is not mounted", {Error::system("fork")});
  pool_watch_.begin(pid);
}

void Service::receive(uint64_t number) {
  Connection* connection = find_connection(number);
  if (!connection) return;
  unsigned char message[sizeof(Message) + 1];  // one more, so that what is too long is seen
  ssize_t count = recv(connection->socket.get(), message, sizeof message, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return close_connection(number);
  auto request = parse_message({message, static_cast<size_t>(count)});
  if (!request) {
    log_warning("closed a connection", {request.error()});
    // All that the other side can read of it is the version.
    if (request.error().code() == Code::kUnsupported)
      send_message(connection->socket.get(), encode_reply(make_reply({}, Status::kFailed)));
    return close_connection(number);
  }
  crash_point("request.received");
  start_helper(*request, number);
  crash_point("helper.started");
}

void Service::start_helper(const Message& message, uint64_t number) {
  const Connection* connection = find_connection(number);
  pid_t pid = fork();
  if (pid == 0) run_helper(message, connection);
  if (pid > 0) {
    helpers_.push_back({.pid = pid, .connection = number, .request = message.request});
    return;
  }
  Error error = Error::system("fork a helper");
  log_error("request failed", {error});
  Reply reply = make_reply(message.request, Status::kFailed);
  reply.step = Step::kHelper;
  reply.system_errno = error.system_errno();
  if (connection) send_message(connection->socket.get(), encode_reply(reply));
}

void Service::run_helper(const Message& message, const Connection* connection) {
  listener_.reset();
  signals_.reset();
  heartbeat_->close();
  // A copy that we kept open would keep another client from seeing its connection end.
  for (Connection& other : connections_)
    if (&other != connection) other.socket.reset();
  Answer answer = serve_request(host_, message);
  std::vector<int> fds;
  for (const Fd& fd : answer.fds) fds.push_back(fd.get());
  if (connection) send_message(connection->socket.get(), answer.bytes, fds);
  _exit(0);
}

void Service::finish_helper(const Errand& helper, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  log_error("a helper died",
            {{"operation", static_cast<uint16_t>(helper.request.operation)}, {"status", status}});
  Reply reply = make_reply(helper.request, Status::kFailed);
  reply.step = Step::kHelper;
  reply.system_errno = ECHILD;
  if (Connection* connection = find_connection(helper.connection))
    send_message(connection->socket.get(), encode_reply(reply));
  // It may have died while its isolate stood still.
  if (helper.request.operation == Operation::kSnapshot)
    if (auto thawed = thaw_without_note(host_); !thawed) log_error("thaw", {thawed.error()});
  if (helper.request.operation != Operation::kLaunch) return;
  // Whatever it had built, nobody was told of: it must not stay, but for a layer that is kept.
  Message removal = {};
  removal.request = helper.request;
  removal.request.operation = Operation::kRemove;
  start_helper(removal, kNoConnection);
}

Service::Connection* Service::find_connection(uint64_t number) {
  for (Connection& connection : connections_)
    if (connection.number == number) return &connection;
  return nullptr;
}

void Service::close_connection(uint64_t number) {
  std::erase_if(connections_,
                [number](const Connection& connection) { return connection.number == number; });
}

}  // namespace atl::warden
