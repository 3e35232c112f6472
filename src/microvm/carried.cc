#include "microvm/carried.h"

#include <sys/socket.h>

#include <algorithm>

namespace atl::microvm {
namespace {

// Told when so much was taken: seldom enough to cost little, often enough never to hold up.
constexpr uint32_t kCreditStep = kPassageWindow / 4;

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

Error broken(const char* what) { return Error(Code::kCorrupt, what); }

}  // namespace

Carried::Carried(uint32_t number, Fd socket, Transport transport, Begins begins)
    : number_(number),
      socket_(std::move(socket)),
      transport_(transport),
      connecting_(begins == Begins::kConnecting) {}

Carried::Carried(uint32_t number, Answered answered)
    : number_(number), transport_(Transport::kQuestion), answered_(std::move(answered)) {}

short Carried::events(bool may_read) const {
  if (!socket_) return 0;
  if (connecting_) return POLLOUT;
  short wanted = may_read && !ended_here_ && may_send_ > 0 ? POLLIN : 0;
  if (!to_socket_.empty()) wanted |= POLLOUT;
  return wanted;
}

Result<bool> Carried::take(const PassageFrame& frame, std::string& queue) {
  if (frame.kind == PassageKind::kReset) {
    cut_socket();
    return false;
  }
  if (frame.kind == PassageKind::kCredit) {
    if (frame.credit > kPassageWindow - may_send_) return broken("more credit than a window");
    may_send_ += frame.credit;
    return true;
  }
  if (ended_there_) return broken("bytes after the end");
  if (frame.kind == PassageKind::kEnd) {
    if (is_question()) return broken("a question that ends");
    ended_there_ = true;
    return connecting_ ? true : write_socket(queue);
  }
  if (frame.kind != PassageKind::kData || frame.data.size() > may_receive_)
    return broken("more bytes than a window");
  may_receive_ -= static_cast<uint32_t>(frame.data.size());
  if (is_question()) return take_datagram(frame.data, queue);
  to_socket_ += frame.data;
  return connecting_ ? true : write_socket(queue);
}

// The guest's question has one answer. The keeper's is sent; what is lost is asked again.
bool Carried::take_datagram(std::string_view data, std::string& queue) {
  if (!answered_) {
    if (send(socket_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
      return try_later(errno) ? true : reset(queue);
    return true;
  }
  answered_(data);
  return reset(queue);
}

bool Carried::move_bytes(short events, bool may_read, std::string& queue) {
  if (connecting_) return events == 0 || take_connected(queue);
  if (!to_socket_.empty() && events != 0 && !write_socket(queue)) return false;
  bool wanted = may_read && !ended_here_ && may_send_ > 0;
  if (wanted && events != 0 && !read_socket(queue)) return false;
  return !is_over();
}

bool Carried::take_connected(std::string& queue) {
  int failure = 0;
  socklen_t bytes = sizeof failure;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failure, &bytes) != 0 || failure != 0)
    return reset(queue);
  connecting_ = false;
  return write_socket(queue);
}

bool Carried::write_socket(std::string& queue) {
  while (!to_socket_.empty()) {
    ssize_t count =
        send(socket_.get(), to_socket_.data(), to_socket_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && try_later(errno)) break;
    if (count < 0) return reset(queue);
    to_socket_.erase(0, static_cast<size_t>(count));
    taken_ += static_cast<uint32_t>(count);
  }
  if (taken_ >= kCreditStep && !ended_there_) {
    queue += encode_credit(number_, taken_);
    may_receive_ += taken_;
    taken_ = 0;
  }
  if (to_socket_.empty() && ended_there_ && !shut_) {
    shutdown(socket_.get(), SHUT_WR);
    shut_ = true;
  }
  return !is_over();
}

bool Carried::read_socket(std::string& queue) {
  char bytes[kMaxPassageBytes];
  ssize_t count = recv(socket_.get(), bytes, std::min(kMaxPassageBytes, may_send_), MSG_DONTWAIT);
  if (count < 0 && try_later(errno)) return true;
  if (count < 0) return reset(queue);
  if (count == 0 && is_question()) return true;
  if (count == 0) {
    ended_here_ = true;
    queue += encode_passage(PassageKind::kEnd, number_);
    return !is_over();
  }
  may_send_ -= static_cast<uint32_t>(count);
  queue += encode_passage(PassageKind::kData, number_, {bytes, static_cast<size_t>(count)});
  return true;
}

bool Carried::reset(std::string& queue) {
  queue += encode_passage(PassageKind::kReset, number_);
  cut_socket();
  return false;
}

void Carried::cut_socket() {
  linger at_once = {.l_onoff = 1, .l_linger = 0};
  if (socket_ && !is_question())
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket_.reset();
}

}  // namespace atl::microvm
