#include "agent/channel.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace atl::agent {
namespace {

// A little less than a frame may hold, so that the allocator does not map and unmap memory for
// each: see main().
constexpr size_t kDataBytes = kMaxChannelDataBytes - 1024;

constexpr int kSendFlags = MSG_DONTWAIT | MSG_NOSIGNAL;

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

int connect_to_loopback(int socket, int family, uint16_t port) {
  if (family == AF_INET) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

}  // namespace

Channel::Channel(uint32_t number, const Error& failure) : number_(number) {
  close_with(failure.system_errno() == 0 ? EIO : failure.system_errno(), failure.message());
}

Channel::Channel(uint32_t number, Fd socket, Worker worker)
    : number_(number), socket_(std::move(socket)), worker_(worker) {}

Channel::Channel(uint32_t number, Fd socket, Control control)
    : number_(number), socket_(std::move(socket)), control_(control) {}

Channel::Channel(uint32_t number, Fd socket, uint16_t port)
    : number_(number), socket_(std::move(socket)), port_(port) {
  connect(AF_INET);
}

void Channel::connect(int family) {
  phase_ = Phase::kConnecting;
  family_ = family;
  if (connect_to_loopback(socket_.get(), family, port_) == 0) return connected(0);
  if (errno != EINPROGRESS) connected(errno);
}

void Channel::connected(int system_errno) {
  if (system_errno == 0) {
    phase_ = Phase::kOpen;
    int on = 1;
    // Only a matter of speed.
    (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return flush();
  }
  if (family_ == AF_INET6) {
    // A sandbox without IPv6 has nobody who listens there.
    bool absent = system_errno == EADDRNOTAVAIL || system_errno == ENETUNREACH;
    return close_with(absent ? ECONNREFUSED : system_errno, "connect");
  }
  Fd second(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!second) return close_with(system_errno, "connect");
  socket_ = std::move(second);
  connect(AF_INET6);
}

void Channel::close_with(int system_errno, std::string_view operation) {
  close_ = {system_errno, std::string(operation)};
  phase_ = Phase::kClosing;
  socket_.reset();
  waiting_ = std::string();
}

void Channel::give_up() {
  if (!over()) close_with(0, "");
}

bool Channel::take_data(std::string_view data) {
  received_ += data.size();
  if (input_ended_ || received_ > granted_) return false;
  if (phase_ == Phase::kClosing || write_ended_) return true;
  // What the socket takes at once is not kept.
  bool direct = phase_ == Phase::kOpen && waiting_.empty();
  ssize_t count = direct ? ::send(socket_.get(), data.data(), data.size(), kSendFlags) : 0;
  if (count > 0) data.remove_prefix(static_cast<size_t>(count));
  if (data.empty()) return true;
  waiting_.append(data);
  flush();
  return true;
}

bool Channel::take_end() {
  if (input_ended_) return false;
  input_ended_ = true;
  flush();
  return true;
}

void Channel::take_credit(uint64_t total_bytes) { credit_ = std::max(credit_, total_bytes); }

void Channel::flush() {
  if (phase_ != Phase::kOpen || write_ended_) return;
  while (head_ < waiting_.size()) {
    ssize_t count =
        send(socket_.get(), waiting_.data() + head_, waiting_.size() - head_, kSendFlags);
    if (count < 0 && try_later(errno)) return;
    if (count < 0) {
      // What the other side had to say before it closed can still be read.
      write_ended_ = true;
      break;
    }
    head_ += static_cast<size_t>(count);
  }
  waiting_ = std::string();
  head_ = 0;
  if (input_ended_ && !write_ended_) {
    (void)shutdown(socket_.get(), SHUT_WR);
    write_ended_ = true;
  }
  close_if_ended();
}

void Channel::close_if_ended() {
  if (phase_ != Phase::kOpen || !read_ended_ || !end_told_) return;
  if (!worker_) {
    // Whoever closes a control socket has gone, and nobody reads what is still to be said.
    if (write_ended_ || control_) close_with(0, "");
    return;
  }
  if (!wait_status_) return;
  bool well = WIFEXITED(*wait_status_) && WEXITSTATUS(*wait_status_) == 0;
  close_with(well ? 0 : EIO, well ? "" : "worker ended too early");
}

void Channel::reaped(pid_t pid, int wait_status) {
  // Once it is reaped its number may be another's.
  if (!worker_ || wait_status_ || worker_->pid != pid) return;
  wait_status_ = wait_status;
  close_if_ended();
}

std::optional<uint32_t> Channel::release_worker() {
  if (!worker_) return std::nullopt;
  uint32_t leaf = worker_->leaf;
  worker_.reset();
  return leaf;
}

std::optional<uint32_t> Channel::speaks_for() const {
  bool has_bytes = control_ && phase_ == Phase::kOpen && readable_;
  return has_bytes ? std::optional(control_->exec) : std::nullopt;
}

std::optional<std::string> Channel::next_report() {
  if (phase_ == Phase::kClosing) {
    phase_ = Phase::kOver;
    return encode(number_, close_);
  }
  if (phase_ != Phase::kOpen) return std::nullopt;
  if (auto credit = next_credit()) return credit;
  if (auto data = next_data()) return data;
  if (phase_ == Phase::kClosing) return next_report();
  if (!read_ended_ || end_told_) return std::nullopt;
  end_told_ = true;
  close_if_ended();
  return encode_channel_end(number_);
}

std::optional<std::string> Channel::next_credit() {
  uint64_t taken = received_ - (waiting_.size() - head_);
  uint64_t total = taken + kChannelWindowBytes;
  if (input_ended_ || total - granted_ < kChannelWindowBytes / 2) return std::nullopt;
  granted_ = total;
  return encode_channel_credit(number_, total);
}

std::optional<std::string> Channel::next_data() {
  if (!readable_ || read_ended_) return std::nullopt;
  char bytes[kDataBytes];
  size_t room = std::min<uint64_t>(sizeof bytes, credit_ - sent_);
  // Without credit only the end is looked for.
  ssize_t count = room > 0 ? recv(socket_.get(), bytes, room, MSG_DONTWAIT)
                           : recv(socket_.get(), bytes, 1, MSG_DONTWAIT | MSG_PEEK);
  if (count < 0 && try_later(errno)) {
    readable_ = false;
    return std::nullopt;
  }
  // Of a worker that died with something unread; how it ended says more.
  if (count < 0 && errno == ECONNRESET && worker_) count = 0;
  if (count < 0) {
    close_with(errno, "receive");
    return std::nullopt;
  }
  read_ended_ = count == 0;
  if (read_ended_ || room == 0) return std::nullopt;
  sent_ += static_cast<uint64_t>(count);
  return encode_channel_data(number_, {bytes, static_cast<size_t>(count)});
}

void Channel::add_watches(PollSet& polls) const {
  if (!socket_) return;
  short events = 0;
  if (phase_ == Phase::kConnecting || head_ < waiting_.size()) events |= POLLOUT;
  if (phase_ == Phase::kOpen && !readable_ && !read_ended_) events |= POLLIN;
  // Not with no events: a hang-up would be reported in every turn.
  if (events != 0) polls.add(socket_.get(), events, {Source::kChannel, number_});
}

void Channel::handle(short ready) {
  if (phase_ == Phase::kConnecting) {
    int failure = 0;
    socklen_t length = sizeof failure;
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failure, &length) != 0) failure = errno;
    return connected(failure);
  }
  if ((ready & ~POLLOUT) != 0) readable_ = true;
  if ((ready & ~POLLIN) != 0) flush();
}

}  // namespace atl::agent
