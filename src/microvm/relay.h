// Relay: joins one stream connection, the newest, with the serial port between keeper and guest.
// Neither side blocks: what one end has no room for is not read from the other, so a reader that
// stands still holds up its own connection and nothing else. One thread.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/rest_note.h"
#include "base/fd.h"
#include "base/result.h"
#include "microvm/rebirth.h"
#include "microvm/relay_frame.h"

namespace atl::microvm {

// What a keeper does with a guest that asks for it. Only one that no sandbox becomes may.
enum class LyingDown : unsigned char { kRefused, kObeyed };

class Relay {
 public:
  // What the guest does when the other side has opened a connection, and when it is told the time
  // (in nanoseconds), which comes before any connection.
  struct Guest {
    std::function<Result<Fd>()> connect;
    std::function<void(int64_t)> set_clock;
    Fd rest = {};  // where the agent's RestNotes come; not valid: it sends none
    // Called with a socket that comes beside a note: see agent/still_files.h.
    std::function<void(Fd)> still = {};
    // Before anything else, where it begins with the memory of another machine.
    std::function<Result<void>(const Rebirth&)> be_reborn = {};
    // The keeper's answer to kKeepFiles: 0 or an errno.
    std::function<void(int)> files_kept = {};
  };
  // What a keeper does that keeps the guest's files, and forgets them when they were taken.
  struct Files {
    std::function<Result<void>()> keep;
    std::function<void()> forget;
  };
  // `port` is non-blocking. The guest's side says that it is up.
  explicit Relay(Fd port, LyingDown lying_down = LyingDown::kRefused)
      : port_(std::move(port)), may_lie_down_(lying_down == LyingDown::kObeyed) {}
  Relay(Fd port, Guest guest);
  // Of a keeper whose machine begins with the memory of another.
  Relay(Fd port, const Rebirth& rebirth);

  // Tests only: as a guest that begins with the memory of another finds one.
  void set_port(Fd port) { port_ = std::move(port); }

  // The keeper's: a connection that takes the place of the one before.
  void open(Fd peer);
  // The keeper's. Without, a guest that asks for it breaks the protocol.
  void offer_files(Files files) { files_ = std::move(files); }
  // The keeper's: no time has passed for the guest since it was at rest. It is told the time before
  // anything else.
  void stood_still() { tells_time_ = true; }
  // Whoever was connected has left, and the guest is not told: it would wake for that and rest for
  // nobody again. The next connection takes the place of that one.
  bool forget_gone_peer();
  // The guest's: kKeepFiles or kFilesTaken.
  void tell_keeper(RelayKind kind) { to_port_ += encode_relay(kind, 0); }

  void add_watches(std::vector<pollfd>& polls) const;
  // After a poll. An error: the other side is gone or breaks the protocol, for good.
  Result<void> move_bytes();

  bool is_ready() const { return ready_; }
  // The keeper's: the guest is still the one that it was.
  bool awaits_rebirth() const { return awaits_rebirth_; }
  // The keeper's: the guest shall be saved. It must not see that its port is closed before.
  bool lies_down() const { return lies_down_; }
  Fd take_port() { return std::move(port_); }
  // The keeper's: nothing happens in the guest until something is sent to it.
  bool is_at_rest() const { return rested_at_ == sent_bytes_ && to_port_.empty(); }

 private:
  static constexpr size_t kMaxQueuedBytes = 256 * 1024;

  Result<void> read_port();
  Result<void> take_frames();
  void read_peer();
  Result<void> write_port();
  void write_peer();
  void close_peer();
  Result<void> take_by_keeper(const RelayFrame& frame);
  Result<void> take_by_guest(const RelayFrame& frame);
  Result<void> take_rebirth(const RelayFrame& frame);
  Result<void> keep_files();
  void tell_time();
  void take_notes();
  void tell_rest();

  Fd port_;
  std::optional<Guest> guest_;
  bool ready_ = false;  // both sides are up
  bool awaits_rebirth_ = false;
  bool may_lie_down_ = false;
  bool lies_down_ = false;
  bool tells_time_ = false;
  Files files_;
  bool files_asked_ = false;  // and not yet taken
  Fd peer_;
  uint32_t connection_ = 0;
  std::string from_port_;  // not yet a whole frame
  std::string to_port_, to_peer_;
  bool closing_ = false;  // the other side has closed: the peer gets what is queued, then its end
  uint64_t sent_bytes_ = 0, received_bytes_ = 0;  // of the port
  std::optional<uint64_t> rested_at_;             // the guest has read so many, and rests
  agent::RestNote passed_on_;                     // to the agent
  std::optional<agent::RestNote> noted_;
};

}  // namespace atl::microvm
