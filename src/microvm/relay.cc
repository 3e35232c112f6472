#include "microvm/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "agent/still_files.h"
#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

bool try_later(int system_errno) { return system_errno == EAGAIN || system_errno == EINTR; }

}  // namespace

Relay::Relay(Fd port, Guest guest) : port_(std::move(port)), guest_(std::move(guest)) {
  to_port_ = encode_relay(RelayKind::kReady, 0);
}

Relay::Relay(Fd port, const Rebirth& rebirth) : port_(std::move(port)), awaits_rebirth_(true) {
  to_port_ = encode_relay(RelayKind::kReborn, 0,
                          {reinterpret_cast<const char*>(&rebirth), sizeof rebirth});
}

void Relay::open(Fd peer) {
  peer_ = std::move(peer);
  to_peer_.clear();
  closing_ = false;
  ++connection_;
  if (!ready_) return;
  if (tells_time_) tell_time();
  to_port_ += encode_relay(RelayKind::kOpen, connection_);
}

bool Relay::forget_gone_peer() {
  char byte;
  if (!peer_ || recv(peer_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0) return false;
  peer_.reset();
  to_peer_.clear();
  closing_ = false;
  return true;
}

void Relay::tell_time() {
  tells_time_ = false;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t time_ns = now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  to_port_ +=
      encode_relay(RelayKind::kClock, 0, {reinterpret_cast<const char*>(&time_ns), sizeof time_ns});
}

void Relay::add_watches(std::vector<pollfd>& polls) const {
  short port = to_peer_.size() < kMaxQueuedBytes ? POLLIN : 0;
  if (!to_port_.empty()) port |= POLLOUT;
  polls.push_back({.fd = port_.get(), .events = port, .revents = 0});
  if (guest_ && guest_->rest)
    polls.push_back({.fd = guest_->rest.get(), .events = POLLIN, .revents = 0});
  if (!peer_) return;
  short peer = ready_ && to_port_.size() < kMaxQueuedBytes ? POLLIN : 0;
  if (!to_peer_.empty()) peer |= POLLOUT;
  // Neither: not even its end is of interest yet, and poll would tell of it again and again.
  polls.push_back({.fd = peer == 0 ? -1 : peer_.get(), .events = peer, .revents = 0});
}

Result<void> Relay::move_bytes() {
  ATOLL_TRY_VOID(read_port());
  ATOLL_TRY_VOID(take_frames());
  write_peer();
  read_peer();
  ATOLL_TRY_VOID(write_port());
  if (!guest_ || !guest_->rest) return {};
  take_notes();
  tell_rest();
  return write_port();
}

void Relay::take_notes() {
  while (true) {
    agent::RestNote note;
    Fd asker;
    std::span<char> room(reinterpret_cast<char*>(&note), sizeof note);
    auto received = linux::receive_message(guest_->rest.get(), room, {&asker, 1}, MSG_DONTWAIT);
    if (!received || received->bytes == 0) return;
    bool lies_down = asker && reinterpret_cast<char*>(&note)[0] == agent::kLayDownNote;
    if (lies_down)
      to_port_ += encode_relay(RelayKind::kLayDown, 0);
    else if (asker && guest_->still)
      guest_->still(std::move(asker));
    else if (received->bytes == sizeof note)
      noted_ = note;
  }
}

void Relay::tell_rest() {
  bool waits = to_peer_.empty() && to_port_.empty() && from_port_.empty() && !closing_;
  if (!peer_ || !waits || noted_ != passed_on_) return;
  char byte;
  bool silent = recv(peer_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && try_later(errno);
  if (!silent) return;  // what it said before its note goes first
  noted_.reset();
  to_port_ += encode_relay(RelayKind::kRest, connection_,
                           {reinterpret_cast<const char*>(&received_bytes_), sizeof(uint64_t)});
}

Result<void> Relay::read_port() {
  if (to_peer_.size() >= kMaxQueuedBytes) return {};
  char bytes[kMaxRelayBytes];
  ssize_t count = read(port_.get(), bytes, sizeof bytes);
  if (count < 0 && try_later(errno)) return {};
  if (count < 0) return Error::system("read the port");
  if (count == 0) return Error(Code::kUnavailable, "the other side of the port is gone");
  from_port_.append(bytes, static_cast<size_t>(count));
  received_bytes_ += static_cast<uint64_t>(count);
  return {};
}

Result<void> Relay::take_frames() {
  RelayFrame frame;
  while (true) {
    ATOLL_TRY(bool whole, take_relay_frame(from_port_, frame));
    if (!whole) return {};
    if (awaits_rebirth_ && frame.header.kind != RelayKind::kReborn) continue;
    bool opens = frame.header.kind != RelayKind::kData && frame.header.kind != RelayKind::kClose;
    if (opens) {
      ATOLL_TRY_VOID(guest_ ? take_by_guest(frame) : take_by_keeper(frame));
      continue;
    }
    if (frame.header.connection != connection_ || !peer_) continue;
    to_peer_ += frame.data;
    closing_ = closing_ || frame.header.kind == RelayKind::kClose;
  }
}

Result<void> Relay::take_by_keeper(const RelayFrame& frame) {
  uint64_t rested_at = 0;
  if (frame.header.kind == RelayKind::kRest && frame.data.size() == sizeof rested_at) {
    std::memcpy(&rested_at, frame.data.data(), sizeof rested_at);
    rested_at_ = rested_at;
    return {};
  }
  if (frame.header.kind == RelayKind::kLayDown && may_lie_down_) {
    lies_down_ = true;
    return {};
  }
  if (frame.header.kind == RelayKind::kKeepFiles && files_.keep && !files_asked_)
    return keep_files();
  if (frame.header.kind == RelayKind::kFilesTaken && files_asked_) {
    files_asked_ = false;
    files_.forget();
    return {};
  }
  if (frame.header.kind == RelayKind::kReborn && awaits_rebirth_ && frame.data.empty()) {
    awaits_rebirth_ = false;
    ready_ = true;
    if (peer_) to_port_ += encode_relay(RelayKind::kOpen, connection_);
    return {};
  }
  if (frame.header.kind != RelayKind::kReady || ready_)
    return Error(Code::kCorrupt, "the guest says what only a keeper does");
  ready_ = true;
  tell_time();
  if (peer_) to_port_ += encode_relay(RelayKind::kOpen, connection_);
  return {};
}

// One who asks and reads no answers is not asked by anybody.
Result<void> Relay::keep_files() {
  if (to_port_.size() >= kMaxQueuedBytes)
    return Error(Code::kCorrupt, "the guest reads no answers");
  files_asked_ = true;
  Result<void> kept = files_.keep();
  int64_t answer = kept ? 0 : std::max(kept.error().system_errno(), 1);
  to_port_ += encode_relay(RelayKind::kFilesKept, 0,
                           {reinterpret_cast<const char*>(&answer), sizeof answer});
  return {};
}

Result<void> Relay::take_by_guest(const RelayFrame& frame) {
  if (frame.header.kind == RelayKind::kClock && frame.data.size() == sizeof(int64_t)) {
    int64_t time_ns;
    std::memcpy(&time_ns, frame.data.data(), sizeof time_ns);
    guest_->set_clock(time_ns);
    ready_ = true;
    return {};
  }
  if (frame.header.kind == RelayKind::kReborn && frame.data.size() == sizeof(Rebirth))
    return take_rebirth(frame);
  if (frame.header.kind == RelayKind::kFilesKept && frame.data.size() == sizeof(int64_t) &&
      guest_->files_kept) {
    int64_t answer;
    std::memcpy(&answer, frame.data.data(), sizeof answer);
    guest_->files_kept(static_cast<int>(answer));
    return {};
  }
  if (frame.header.kind != RelayKind::kOpen || !ready_)
    return Error(Code::kCorrupt, "the keeper says what it should not");
  connection_ = frame.header.connection;
  to_peer_.clear();
  closing_ = false;
  ATOLL_TRY(peer_, guest_->connect());
  passed_on_ = {passed_on_.connections + 1, 0};
  return {};
}

// Its own keeper has sent this frame, and what came after it, and knows of no connection.
Result<void> Relay::take_rebirth(const RelayFrame& frame) {
  Rebirth rebirth;
  std::memcpy(&rebirth, frame.data.data(), sizeof rebirth);
  peer_.reset();
  to_peer_.clear();
  closing_ = false;
  noted_.reset();
  if (!guest_->be_reborn) return Error(Code::kCorrupt, "the keeper says what it should not");
  ATOLL_TRY_VOID(guest_->be_reborn(rebirth));
  received_bytes_ = sizeof frame.header + sizeof rebirth + from_port_.size();
  to_port_ += encode_relay(RelayKind::kReborn, 0);
  return {};
}

void Relay::write_peer() {
  while (peer_ && !to_peer_.empty()) {
    ssize_t count =
        send(peer_.get(), to_peer_.data(), to_peer_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && try_later(errno)) return;
    if (count < 0) return close_peer();
    to_peer_.erase(0, static_cast<size_t>(count));
    passed_on_.bytes += static_cast<uint64_t>(count);
  }
  if (closing_) close_peer();
}

void Relay::read_peer() {
  if (!ready_ || !peer_ || to_port_.size() >= kMaxQueuedBytes) return;
  char bytes[kMaxRelayBytes];
  ssize_t count = recv(peer_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count < 0 && try_later(errno)) return;
  if (count <= 0) return close_peer();
  if (tells_time_) tell_time();
  to_port_ += encode_relay(RelayKind::kData, connection_, {bytes, static_cast<size_t>(count)});
}

void Relay::close_peer() {
  peer_.reset();
  to_peer_.clear();
  if (!closing_) to_port_ += encode_relay(RelayKind::kClose, connection_);
  closing_ = false;
}

Result<void> Relay::write_port() {
  while (!to_port_.empty()) {
    ssize_t count = write(port_.get(), to_port_.data(), to_port_.size());
    if (count < 0 && try_later(errno)) return {};
    if (count < 0) return Error::system("write to the port");
    if (count == 0) return {};
    to_port_.erase(0, static_cast<size_t>(count));
    sent_bytes_ += static_cast<uint64_t>(count);
  }
  return {};
}

}  // namespace atl::microvm
