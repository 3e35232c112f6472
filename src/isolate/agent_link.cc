#include "isolate/agent_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "async/as_tuple.h"
#include "async/spawn.h"
#include "base/log.h"
#include "isolate/event.h"
#include "linux/unix_socket.h"

namespace atl::isolate {

namespace asio = boost::asio;

constexpr size_t kLeastReadBytes = 8 * 1024;  // of a stream that is idle, as most are
constexpr size_t kMostReadBytes = 256 * 1024;
constexpr size_t kMaxQueuedBytes = 16 * 1024 * 1024;
constexpr size_t kRoomBytes = 1024 * 1024;  // queued, below which there is room for more

struct AgentLink::Shared {
  explicit Shared(AgentSocket given) : socket(std::move(given)), written(socket.get_executor()) {}

  AgentSocket socket;
  agent::FrameReader reader{agent::FrameReader::Side::kDaemon};
  size_t room = kLeastReadBytes;  // to read into: grows with what comes
  std::optional<agent::Frame> peeked;
  std::string queue;
  bool writing = false;
  bool closed = false;
  Event written;  // or closed
};

AgentLink::AgentLink(AgentSocket socket) : shared_(std::make_shared<Shared>(std::move(socket))) {}

AgentLink::~AgentLink() { close(); }

bool AgentLink::is_up() const {
  if (shared_->closed) return false;
  char byte = 0;
  ssize_t count =
      recv(shared_->socket.native_handle(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void AgentLink::close() {
  if (shared_->closed) return;
  shared_->closed = true;
  boost::system::error_code ignored;
  shared_->socket.close(ignored);
  shared_->written.notify_all();
}

Task<Result<agent::Frame>> AgentLink::read() {
  std::shared_ptr<Shared> shared = shared_;
  if (shared->peeked) co_return *std::exchange(shared->peeked, std::nullopt);
  while (!shared->closed) {
    auto next = shared->reader.next();
    if (!next) co_return std::move(next).error();
    if (*next) co_return **next;
    asio::mutable_buffer room(shared->reader.prepare(shared->room), shared->room);
    auto [error, count] = co_await shared->socket.async_read_some(room, kAsTuple);
    if (error) co_return Error(Code::kUnavailable, "agent stream: " + error.message());
    shared->reader.commit(count);
    bool was_full = count == shared->room;
    shared->room = std::clamp(was_full ? count * 2 : count, kLeastReadBytes, kMostReadBytes);
  }
  co_return Error(Code::kCancelled, "agent stream is closed");
}

bool AgentLink::has_buffered_frame() {
  if (shared_->peeked) return true;
  auto next = shared_->reader.next();
  if (!next || !*next)
    return false;  // a malformed frame is reported by read(), which meets it again
  shared_->peeked = **next;
  return true;
}

void AgentLink::send(std::string frame) {
  if (shared_->closed) return;
  if (shared_->queue.size() + frame.size() > kMaxQueuedBytes) {
    log_warning("agent does not read; its stream is dropped");
    close();
    return;
  }
  shared_->queue += frame;
  if (!shared_->writing) begin_writing(shared_);
}

void AgentLink::begin_writing(const std::shared_ptr<Shared>& shared) {
  shared->writing = true;
  // detached: the task owns a share of the state and ends when the queue is empty or the link
  // closed
  spawn(shared->socket.get_executor(), write_queue(shared));
}

Task<Result<void>> AgentLink::send_with(std::string frame, int descriptor) {
  std::shared_ptr<Shared> shared = shared_;
  while (shared->writing && !shared->closed) co_await shared->written.wait();
  shared->writing = true;  // what others send waits in the queue
  Result<void> sent = Error(Code::kCancelled, "agent stream is closed");
  while (!shared->closed) {
    int descriptors[] = {descriptor};
    sent = linux::send_message(shared->socket.native_handle(), frame, descriptors, MSG_DONTWAIT);
    if (sent || sent.error().system_errno() != EAGAIN) break;
    co_await shared->socket.async_wait(AgentSocket::wait_write, kAsTuple);
  }
  shared->writing = false;
  if (!shared->queue.empty() && !shared->closed) begin_writing(shared);
  co_return sent;
}

Task<void> AgentLink::write_queue(std::shared_ptr<Shared> shared) {
  while (!shared->queue.empty() && !shared->closed) {
    std::string batch = std::exchange(shared->queue, std::string());
    asio::const_buffer bytes = asio::buffer(batch);
    auto [error, count] = co_await asio::async_write(shared->socket, bytes, kAsTuple);
    if (error && !shared->closed) {
      shared->closed = true;
      boost::system::error_code ignored;
      shared->socket.close(ignored);
    }
    shared->written.notify_all();
  }
  shared->writing = false;
  shared->written.notify_all();
}

Task<bool> AgentLink::wait_room(std::chrono::steady_clock::time_point deadline) {
  std::shared_ptr<Shared> shared = shared_;
  while (!shared->closed && shared->queue.size() > kRoomBytes) {
    bool notified = co_await shared->written.wait_until(deadline);
    if (!notified) co_return false;
  }
  co_return !shared->closed;
}

}  // namespace atl::isolate
