#include "microvm/passage.h"

#include <unistd.h>

#include <algorithm>

namespace atl::microvm {
namespace {

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

}  // namespace

Passage::Passage(Fd port) : port_(std::move(port)) {}

Passage::Passage(Fd port, Dial dial) : port_(std::move(port)), dial_(std::move(dial)) {}

uint32_t Passage::begin(const Destination& destination) {
  to_port_ += encode_open(++newest_, destination);
  return newest_;
}

void Passage::open(Fd socket, const Destination& destination) {
  uint32_t number = begin(destination);
  carried_.emplace(number, Carried(number, std::move(socket), destination.transport,
                                   Carried::Begins::kConnected));
}

void Passage::ask(const Destination& destination, std::string_view question,
                  Carried::Answered answered) {
  if (question.empty() || question.size() > kMaxPassageBytes) return;
  if (count_questions() >= kMaxQuestions) drop_oldest_question();
  uint32_t number = begin(destination);
  to_port_ += encode_passage(PassageKind::kData, number, question);
  carried_.emplace(number, Carried(number, std::move(answered)));
}

size_t Passage::count_questions() const {
  auto is_question = [](const auto& one) { return one.second.is_question(); };
  return static_cast<size_t>(std::count_if(carried_.begin(), carried_.end(), is_question));
}

// One that was never answered: who asked has asked again long since.
void Passage::drop_oldest_question() {
  auto is_question = [](const auto& one) { return one.second.is_question(); };
  auto oldest = std::find_if(carried_.begin(), carried_.end(), is_question);
  if (oldest == carried_.end()) return;
  to_port_ += encode_passage(PassageKind::kReset, oldest->first);
  carried_.erase(oldest);
}

void Passage::add_watches(std::vector<pollfd>& polls) {
  first_watch_ = polls.size();
  watched_.clear();
  short port = to_port_.size() < kMaxAnswerBytes ? POLLIN : 0;
  if (!to_port_.empty()) port |= POLLOUT;
  polls.push_back({.fd = port_.get(), .events = port, .revents = 0});
  for (auto& [number, one] : carried_) {
    short events = one.events(may_queue());
    if (events == 0) continue;
    watched_.push_back(number);
    polls.push_back({.fd = one.socket(), .events = events, .revents = 0});
  }
}

Result<void> Passage::move_bytes(std::span<const pollfd> polls) {
  ATOLL_TRY_VOID(read_port());
  move_carried(polls.subspan(first_watch_ + 1, watched_.size()));
  return write_port();
}

// From another one each time, so that none is always the last.
void Passage::move_carried(std::span<const pollfd> polls) {
  ++turn_;
  for (size_t i = 0; i < polls.size(); ++i) {
    size_t at = (turn_ + i) % polls.size();
    auto one = carried_.find(watched_[at]);
    // A number is used once: what has gone meanwhile is not mistaken for another.
    if (one == carried_.end()) continue;
    if (!one->second.move_bytes(polls[at].revents, may_queue(), to_port_)) carried_.erase(one);
  }
}

Result<void> Passage::read_port() {
  if (to_port_.size() >= kMaxAnswerBytes) return {};
  char bytes[kMaxReadBytes];
  ssize_t count = read(port_.get(), bytes, sizeof bytes);
  if (count < 0 && try_later(errno)) return {};
  if (count < 0) return Error::system("read the passage");
  if (count == 0) return Error(Code::kUnavailable, "the other end of the passage is gone");
  from_port_.append(bytes, static_cast<size_t>(count));
  std::string_view rest = from_port_;
  PassageFrame frame;
  while (true) {
    ATOLL_TRY(bool whole, take_passage_frame(rest, frame));
    if (!whole) break;
    ATOLL_TRY_VOID(take_frame(frame));
  }
  from_port_.erase(0, from_port_.size() - rest.size());
  return {};
}

Result<void> Passage::take_frame(const PassageFrame& frame) {
  if (frame.kind == PassageKind::kOpen) return take_open(frame);
  auto one = carried_.find(frame.connection);
  if (one == carried_.end()) {
    if (frame.connection > newest_ || frame.connection == 0)
      return Error(Code::kCorrupt, "a connection that never was");
    return {};
  }
  ATOLL_TRY(bool goes_on, one->second.take(frame, to_port_));
  if (!goes_on) carried_.erase(one);
  return {};
}

Result<void> Passage::take_open(const PassageFrame& frame) {
  if (!dial_) return Error(Code::kCorrupt, "the keeper opens what only a guest does");
  if (frame.connection <= newest_) return Error(Code::kCorrupt, "a number is used twice");
  newest_ = frame.connection;
  Result<Fd> socket = Error(Code::kExhausted, "too many connections");
  if (carried_.size() < kMaxCarried) socket = dial_(frame.destination);
  if (!socket) {
    to_port_ += encode_passage(PassageKind::kReset, frame.connection);
    return {};
  }
  bool is_stream = frame.destination.transport == Transport::kStream;
  carried_.emplace(frame.connection,
                   Carried(frame.connection, std::move(*socket), frame.destination.transport,
                           is_stream ? Carried::Begins::kConnecting : Carried::Begins::kConnected));
  return {};
}

Result<void> Passage::write_port() {
  size_t written = 0;
  while (written < to_port_.size()) {
    ssize_t count = write(port_.get(), to_port_.data() + written, to_port_.size() - written);
    if (count < 0 && !try_later(errno)) return Error::system("write to the passage");
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  to_port_.erase(0, written);
  return {};
}

}  // namespace atl::microvm
