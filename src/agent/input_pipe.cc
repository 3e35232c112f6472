#include "agent/input_pipe.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "agent/terminal.h"

namespace atl::agent {
namespace {

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

bool other_end_is_closed(int fd) {
  pollfd look = {fd, 0, 0};
  return poll(&look, 1, 0) == 1;
}

}  // namespace

InputPipe::InputPipe(std::string first, InputMode mode)
    : mode_(mode),
      phase_(mode == InputMode::kOpen ? Phase::kOpen : Phase::kEnding),
      buffer_(std::move(first)),
      first_bytes_(buffer_.size()),
      received_(buffer_.size()) {}

void InputPipe::open(Fd end, Kind kind) {
  fd_ = std::move(end);
  kind_ = kind;
  if (!fd_) return close();
  pass_on();
}

bool InputPipe::take(const Input& input) {
  if (mode_ != InputMode::kOpen) return false;
  // What was on its way when the program closed its end is nobody's.
  if (closed_by_program_) return true;
  if (input.offset > received_) return false;
  uint64_t known = received_ - input.offset;
  if (known >= input.data.size()) return true;
  if (phase_ != Phase::kOpen) return false;
  std::string_view fresh = input.data.substr(static_cast<size_t>(known));
  uint64_t told = told_ ? told_->offset : 0;
  if (received_ + fresh.size() > std::max(told, first_bytes_) + kInputCreditBytes) return false;
  buffer_.append(fresh);
  received_ += fresh.size();
  pass_on();
  return true;
}

bool InputPipe::end_at(uint64_t offset) {
  if (mode_ != InputMode::kOpen) return false;
  if (closed_by_program_) return true;
  // Less than was received: an atolld that died had sent more before it could hear of it.
  if (offset > received_) return false;
  if (phase_ == Phase::kOpen) phase_ = Phase::kEnding;
  pass_on();
  return true;
}

void InputPipe::ready() {
  if (!fd_) return;
  // The event may be older than what has happened to the buffer in this turn.
  if (wants_write()) return pass_on();
  if (other_end_is_closed(fd_.get())) close();
}

void InputPipe::pass_on() {
  if (!fd_ || !write_buffer() || phase_ != Phase::kEnding) return;
  if (kind_ == Kind::kTerminal && !end_is_queued_) {
    // Only now: what ends the input depends on what the program has set up meanwhile.
    end_is_queued_ = true;
    buffer_ = end_of_input(fd_.get(), last_byte_);
    if (!write_buffer()) return;
  }
  if (fd_) finish();
}

bool InputPipe::write_buffer() {
  while (head_ < buffer_.size()) {
    ssize_t count = write(fd_.get(), buffer_.data() + head_, buffer_.size() - head_);
    if (count < 0 && !try_later(errno)) {
      close();
      return false;
    }
    if (count <= 0) break;
    head_ += static_cast<size_t>(count);
    last_byte_ = buffer_[head_ - 1];
    if (!end_is_queued_) passed_ += static_cast<uint64_t>(count);
  }
  bool all = head_ == buffer_.size();
  // Freed at once when empty, for most inputs wait most of the time; else when half is waste.
  if (all) buffer_ = std::string();
  if (!all && head_ < buffer_.size() / 2) return false;
  buffer_.erase(0, std::min(head_, buffer_.size()));
  head_ = 0;
  return all;
}

void InputPipe::finish() {
  phase_ = Phase::kClosed;
  fd_.reset();
}

void InputPipe::close() {
  if (phase_ != Phase::kClosed) closed_by_program_ = true;
  phase_ = Phase::kClosed;
  fd_.reset();
  buffer_ = std::string();
  head_ = 0;
}

uint64_t InputPipe::taken() const {
  if (phase_ == Phase::kClosed && !closed_by_program_) return received_;
  return std::min(received_, passed_ + kWindowBytes - kInputCreditBytes);
}

std::optional<InputTaken> InputPipe::next_report() {
  if (mode_ != InputMode::kOpen) return std::nullopt;
  InputTaken now = {taken(), phase_ != Phase::kOpen};
  if (phase_ == Phase::kEnding && now.offset < received_) now.closed = false;
  bool known = told_ && told_->offset == now.offset && told_->closed == now.closed;
  if (known) return std::nullopt;
  told_ = now;
  return now;
}

}  // namespace atl::agent
