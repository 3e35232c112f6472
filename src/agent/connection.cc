#include "agent/connection.h"

#include <sys/socket.h>

#include <span>

#include "linux/unix_socket.h"

namespace atl::agent {
namespace {

constexpr size_t kReceiveBytes = 32 * 1024;

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

}  // namespace

Result<void> Connection::flush() {
  while (queued() > 0) {
    ssize_t count =
        send(socket_.get(), outgoing_.data() + head_, queued(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && try_later(errno)) return {};
    if (count < 0) return Error::system("send to daemon");
    head_ += static_cast<size_t>(count);
  }
  outgoing_.clear();
  head_ = 0;
  return {};
}

void Connection::rest() {
  if (!wants_write()) outgoing_ = std::string();
}

Result<void> Connection::receive() {
  char* room = reader_.prepare(kReceiveBytes);
  Fd descriptor;
  auto received = linux::receive_message(socket_.get(), {room, kReceiveBytes},
                                         std::span(&descriptor, 1), MSG_DONTWAIT);
  if (!received && try_later(received.error().system_errno())) return {};
  if (!received) return std::move(received).error();
  if (received->bytes == 0) return Error(Code::kUnavailable, "daemon closed the connection");
  if (descriptor) descriptor_ = std::move(descriptor);
  reader_.commit(received->bytes);
  received_bytes_ += received->bytes;
  return {};
}

}  // namespace atl::agent
