#include "builder/service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"

namespace atl::builder {
namespace {

using Clock = std::chrono::steady_clock;

Reply make_reply(Status status, std::string_view message) {
  Reply reply = {};
  reply.magic = kMagic;
  reply.version = kVersion;
  reply.status = status;
  message = message.substr(0, kMaxMessageBytes);
  reply.message_bytes = static_cast<uint32_t>(message.size());
  memcpy(reply.message.data(), message.data(), message.size());
  return reply;
}

// A client that has gone away has lost its build anyway.
void send_reply(int socket, const Reply& reply) {
  auto sent = linux::send_message(socket, {reinterpret_cast<const char*>(&reply), sizeof reply}, {},
                                  MSG_DONTWAIT);
  if (!sent) log_warning("reply was not sent", {sent.error()});
}

bool is_request(const Request& request) {
  return request.magic == kMagic && request.version == kVersion && request.reserved == 0 &&
         (request.flags & ~kWithCredentials) == 0 &&
         (request.operation == Operation::kPack || request.operation == Operation::kTree);
}

}  // namespace

Result<void> Service::run() {
  ATOLL_TRY_VOID(open_sockets());
  log_info("serving", {{"client_uid", client_uid_}});
  while (!stopping_ || !connections_.empty() || !cleaners_.empty())
    ATOLL_TRY_VOID(wait_and_dispatch());
  log_info("stopped");
  return {};
}

Result<void> Service::open_sockets() {
  // Left by a builder that was killed; our lock proves that it is dead.
  if (unlinkat(run_.get(), kSocketName, 0) != 0 && errno != ENOENT)
    return Error::system("unlink an old socket");
  sigset_t handled;
  sigemptyset(&handled);
  for (int number : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&handled, number);
  if (sigprocmask(SIG_BLOCK, &handled, nullptr) != 0) return Error::system("block signals");
  signals_ = Fd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return Error::system("signalfd");
  ATOLL_TRY(listener_, linux::listen_at(run_.get(), kSocketName, SOCK_SEQPACKET | SOCK_NONBLOCK,
                                        kMaxConnections));
  if (fchownat(run_.get(), kSocketName, client_uid_, -1u, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::system("chown the socket");
  ATOLL_TRY(heartbeat_, linux::Heartbeat::open_at(run_.get(), "atoll-builder", client_uid_));
  return {};
}

Result<void> Service::wait_and_dispatch() {
  bool listening = !stopping_ && connections_.size() < kMaxConnections;
  bool reading = cleaners_.empty();
  std::vector<pollfd> waiting = {
      {.fd = signals_.get(), .events = POLLIN, .revents = 0},
      {.fd = listening ? listener_.get() : -1, .events = POLLIN, .revents = 0},
      {.fd = heartbeat_->fd(), .events = POLLIN, .revents = 0}};
  size_t first = waiting.size();
  for (const Connection& connection : connections_)
    waiting.push_back({.fd = connection.build != 0 || reading ? connection.socket.get() : -1,
                       .events = POLLIN,
                       .revents = 0});
  if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return Error::system("poll");
  if (waiting[2].revents != 0) heartbeat_->beat();
  for (size_t i = connections_.size(); i-- > 0;) {
    if (waiting[first + i].revents == 0 || receive(connections_[i])) continue;
    end_build(connections_[i]);
    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
  }
  if (waiting[1].revents != 0) accept_connection();
  if (waiting[0].revents != 0) take_signals();
  return {};
}

void Service::take_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    log_info("stopping", {{"signal", info.ssi_signo}});
    stopping_ = true;
  }
  reap();
  if (!stopping_) return;
  for (Connection& connection : connections_) end_build(connection);
  connections_.clear();
}

void Service::accept_connection() {
  Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return;  // the peer was faster in leaving
  auto peer = linux::peer_credentials(socket.get());
  if (!peer || peer->uid != client_uid_) {
    log_warning("refused a connection", {{"uid", peer ? static_cast<int64_t>(peer->uid) : -1}});
    return;
  }
  connections_.push_back({.socket = std::move(socket), .build = 0, .build_pidfd = {}, .name = ""});
}

bool Service::receive(Connection& connection) {
  Request request = {};
  Fd fds[kRequestFds];
  auto received = linux::receive_message(connection.socket.get(),
                                         {reinterpret_cast<char*>(&request), sizeof request}, fds,
                                         MSG_DONTWAIT);
  if (!received && received.error().system_errno() == EAGAIN) return true;
  if (!received || received->bytes == 0) return false;
  bool usable = received->whole && received->bytes == sizeof request &&
                received->fds == kRequestFds && is_request(request) && connection.build == 0;
  if (!usable) {
    log_warning("closed a connection: not a request");
    return false;
  }
  auto busy = std::count_if(connections_.begin(), connections_.end(),
                            [](const Connection& one) { return one.build != 0; });
  if (static_cast<size_t>(busy) >= kMaxBuilds) {
    send_reply(connection.socket.get(), make_reply(Status::kBusy, "other builds are under way"));
    return true;
  }
  crash_point("request.received");
  start_build(connection, request, std::move(fds[0]), std::move(fds[1]));
  return true;
}

void Service::start_build(Connection& connection, const Request& request, Fd file, Fd log) {
  connection.name = random_text(16);
  pid_t pid = fork();
  if (pid == 0)
    run_build(connection, {.operation = request.operation,
                           .flags = request.flags,
                           .file = file.get(),
                           .log = log.get()});
  auto pidfd = pid > 0 ? linux::open_pidfd(pid) : Result<Fd>(Error::system("fork a build"));
  if (!pidfd) {
    log_error("cannot build", {pidfd.error()});
    if (pid > 0) kill(pid, SIGKILL);
    send_reply(connection.socket.get(), make_reply(Status::kFailed, pidfd.error().message()));
    return;
  }
  connection.build = pid;
  connection.build_pidfd = std::move(*pidfd);
  log_info("building", {{"build", connection.name}, {"pid", pid}});
}

void Service::run_build(Connection& connection, const BuildOrder& order) {
  pid_t parent = getppid();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || parent == 1) _exit(1);
  listener_.reset();
  signals_.reset();
  heartbeat_->close();
  // A copy that we kept open would keep another client from seeing its connection end.
  for (Connection& other : connections_)
    if (&other != &connection) other.socket.reset();
  auto begin = Clock::now();
  Result<KeptImage> image = build_image(workshop_, connection.name, order);
  auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  Reply reply = make_reply(Status::kBuilt, "");
  if (!image) {
    bool refused = image.error().code() == Code::kInvalid;
    log_warning("no image", {{"build", connection.name}, image.error()});
    reply = make_reply(refused ? Status::kRefused : Status::kFailed, image.error().message());
  } else {
    log_info("built", {{"build", connection.name},
                       {"image", image->digest.string()},
                       {"bytes", image->bytes},
                       {"ms", spent.count()}});
    reply.image = image->digest.bytes();
    reply.image_bytes = image->bytes;
  }
  reply.elapsed_ms = static_cast<uint32_t>(spent.count());
  crash_point("build.answered");
  send_reply(connection.socket.get(), reply);
  _exit(0);
}

// Its stages die with it; what it has made is taken away before anything else is built.
void Service::end_build(Connection& connection) {
  if (connection.build == 0) return;
  (void)linux::send_signal(connection.build_pidfd.get(), SIGKILL);  // ESRCH: it has ended
  auto ended = linux::wait_for_exit(connection.build_pidfd.get());
  if (!ended) log_error("wait for a build", {ended.error()});
  connection.build = 0;
  clean_up(connection.name);
}

// In a process of its own: a large tree takes longer than this loop may stand still.
void Service::clean_up(std::string name) {
  pid_t pid = fork();
  if (pid > 0) {
    auto pidfd = linux::open_pidfd(pid);
    if (pidfd) cleaners_.push_back(std::move(*pidfd));
    return;
  }
  if (pid == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) _exit(1);
    heartbeat_->close();
    listener_.reset();
    signals_.reset();
    connections_.clear();
  }
  auto removed = remove_work_directory(workshop_, name);
  if (!removed) log_error("left for the next start", {removed.error()});
  removed = remove_unfinished_images(workshop_.images.get());
  if (!removed) log_error("left for the next start", {removed.error()});
  if (pid == 0) _exit(0);
}

void Service::reap() {
  std::erase_if(cleaners_, [](const Fd& cleaner) {
    return linux::has_ended(cleaner.get()) && linux::wait_for_exit(cleaner.get()).ok();
  });
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection& connection = connections_[i];
    if (connection.build == 0 || !linux::has_ended(connection.build_pidfd.get())) continue;
    end_build(connection);
    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace atl::builder
