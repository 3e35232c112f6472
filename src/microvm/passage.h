// Passage: many connections over one stream between the guest, in which programs make them, and the
// keeper, which makes each again in the network of its jail. That network has no way out but
// atoll-egress, so what is allowed, what it costs and what is recorded is decided there, as for any
// jail; nothing here knows of rules.
//
// A connection that stands still keeps a window at most on either side and holds up no other. One
// thread; poll() between two calls.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "microvm/carried.h"
#include "microvm/passage_frame.h"

namespace atl::microvm {

// That a guest has at a time; and a keeper of both, where some end a little later.
inline constexpr size_t kMaxOpened = 256, kMaxQuestions = 64;
inline constexpr size_t kMaxCarried = 384;

class Passage {
 public:
  // A socket that is being connected.
  using Dial = std::function<Result<Fd>(const Destination&)>;
  // The guest's end, and the keeper's.
  explicit Passage(Fd port);
  Passage(Fd port, Dial dial);

  // The guest's: a connection that a program has made, and a question that it has asked.
  void open(Fd socket, const Destination& destination);
  void ask(const Destination& destination, std::string_view question, Carried::Answered answered);
  bool is_full() const { return carried_.size() - count_questions() >= kMaxOpened; }
  // For a guest that shall be saved, and must not see that its port is closed before.
  Fd take_port() { return std::move(port_); }
  // Whether there is room for more to send.
  bool may_queue() const { return to_port_.size() < kMaxQueuedBytes; }

  // Remembers where in `polls` its own are: the next move_bytes() is given the same list.
  void add_watches(std::vector<pollfd>& polls);
  // An error: the other end is gone or breaks the protocol, for good.
  Result<void> move_bytes(std::span<const pollfd> polls);

 private:
  static constexpr size_t kMaxQueuedBytes = 256 * 1024;  // of connections
  static constexpr size_t kMaxAnswerBytes = 512 * 1024;  // with what frames are answered by
  static constexpr size_t kMaxReadBytes = 64 * 1024;

  Result<void> read_port();
  Result<void> take_frame(const PassageFrame& frame);
  Result<void> take_open(const PassageFrame& frame);
  void move_carried(std::span<const pollfd> polls);
  Result<void> write_port();
  uint32_t begin(const Destination& destination);
  size_t count_questions() const;
  void drop_oldest_question();

  Fd port_;
  Dial dial_;  // none: the guest's
  std::map<uint32_t, Carried> carried_;
  uint32_t newest_ = 0;
  std::string from_port_;  // not yet a whole frame
  std::string to_port_;
  size_t first_watch_ = 0;
  std::vector<uint32_t> watched_;  // whose watches follow the port's
  size_t turn_ = 0;
};

}  // namespace atl::microvm
