#include "http/wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace atl::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kLingerStepBytes = 4096;
constexpr size_t kMaxAheadBytes = 16 * 1024;
constexpr size_t kMaxLingerBytes = 4 * 1024 * 1024;
constexpr std::chrono::milliseconds kLingerTime{1000};

void drop_front(Wire::Parts& parts, size_t bytes) {
  for (asio::const_buffer& part : parts) {
    size_t taken = std::min(bytes, part.size());
    part += taken;
    bytes -= taken;
  }
}

}  // namespace

void Wire::consume(size_t bytes) {
  ATOLL_CHECK(bytes <= end_ - begin_);
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

void Wire::trim(size_t most_bytes) {
  if (begin_ == end_ && input_.size() > most_bytes) std::string().swap(input_);
}

void Wire::watch(std::function<void()> on_end) {
  // What is pending stays so: cancelling it would cancel every other operation of the socket.
  if (watch_) watch_->on_end = nullptr;
  if (!on_end) return;
  // Who is watched is waited for, for hours perhaps and with thousands of others.
  trim(0);
  if (!watch_) watch_ = std::make_shared<Watch>();
  watch_->on_end = std::move(on_end);
  if (!watch_->pending) wait_for_peer();
}

void Wire::wait_for_peer() {
  watch_->pending = true;
  socket_.async_wait(Socket::wait_read, [this, watch = watch_](const error_code& error) {
    watch->pending = false;
    if (error || !watch->on_end) return;  // also when the wire is gone
    Peer peer = look_at_peer();
    if (peer == Peer::kThere) wait_for_peer();
    if (peer != Peer::kEnded) return;
    auto on_end = std::exchange(watch->on_end, nullptr);
    on_end();
  });
}

Wire::Peer Wire::look_at_peer() {
  if (end_ >= kMaxAheadBytes) return Peer::kAheadOfUs;
  // Most wake-ups bring nothing, and then no buffer is worth having.
  char first;
  int fd = socket_.native_handle();
  ssize_t count = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Peer::kThere;
  if (count <= 0) return Peer::kEnded;
  if (input_.size() < kMaxAheadBytes) input_.resize(kMaxAheadBytes);
  count = recv(fd, input_.data() + end_, kMaxAheadBytes - end_, MSG_DONTWAIT);
  if (count > 0) end_ += static_cast<size_t>(count);
  return Peer::kThere;
}

asio::awaitable<Result<size_t>> Wire::read_more(SteadyTime deadline, size_t room) {
  if (interrupted_) co_return Error(Code::kCancelled, "read: connection is ending");
  if (begin_ > 0) {
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (input_.size() < room) input_.resize(room);
  if (end_ >= room) co_return Error(Code::kExhausted, "read: more than the buffer holds");
  overdue_ = false;
  read_deadline_ = deadline;
  asio::mutable_buffer into(input_.data() + end_, room - end_);
  auto [error, count] = co_await socket_.async_read_some(into, kAwait);
  read_deadline_ = kNever;
  if (error == asio::error::eof) co_return size_t{0};
  if (error) co_return failure("read", error);
  end_ += count;
  co_return count;
}

asio::awaitable<Result<void>> Wire::write(Parts parts, std::chrono::milliseconds patience) {
  while (asio::buffer_size(parts) > 0) {
    if (interrupted_) co_return Error(Code::kCancelled, "write: connection is ending");
    overdue_ = false;
    write_deadline_ = std::chrono::steady_clock::now() + patience;
    auto [error, count] = co_await socket_.async_write_some(parts, kAwait);
    write_deadline_ = kNever;
    if (error) co_return failure("write", error);
    drop_front(parts, count);
  }
  co_return Result<void>();
}

asio::awaitable<void> Wire::linger() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) co_return;
  SteadyTime deadline = std::chrono::steady_clock::now() + kLingerTime;
  size_t total = input().size();
  consume(total);
  while (total < kMaxLingerBytes) {
    auto count = co_await read_more(deadline, kLingerStepBytes);
    if (!count.ok() || *count == 0) co_return;
    total += *count;
    consume(*count);
  }
}

void Wire::interrupt() {
  interrupted_ = true;
  error_code error;
  // Fails only on a socket that is closed, and then nothing is pending.
  socket_.cancel(error);
}

void Wire::sweep(SteadyTime now) {
  if (on_sweep_) on_sweep_(now);
  if (now < read_deadline_ && now < write_deadline_) return;
  overdue_ = true;
  error_code error;
  socket_.cancel(error);
}

Error Wire::failure(std::string_view operation, const error_code& error) const {
  std::string what(operation);
  if (interrupted_) return Error(Code::kCancelled, what + ": connection is ending");
  if (overdue_) return Error(Code::kTimeout, what + ": no progress in time");
  return Error(Code::kCancelled, what + ": " + error.message());
}

}  // namespace atl::http
