// One channel of the agent stream: a socket, to a file worker or to a port inside, whose bytes are
// passed on both ways within the credit; see channel_protocol.h.
//
// Bytes from the socket are taken only when a frame is asked for, so what nobody takes stays with
// whoever sends it; bytes from the daemon wait here, at most the window that it was given.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/channel_protocol.h"
#include "agent/poll_set.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// The process at the other end of a file operation's socket.
struct Worker {
  pid_t pid;
  uint32_t leaf;
};

// The exec whose control socket it is.
struct Control {
  uint32_t exec;
};

class Channel {
 public:
  // One that is over before it began.
  Channel(uint32_t number, const Error& failure);
  Channel(uint32_t number, Fd socket, Worker worker);
  Channel(uint32_t number, Fd socket, Control control);
  // Begins to connect. `socket` is not blocking.
  Channel(uint32_t number, Fd socket, uint16_t port);

  // From the daemon; false: it breaks the protocol.
  bool take_data(std::string_view data);
  bool take_end();
  void take_credit(uint64_t total_bytes);
  void give_up();

  // It has bytes of a program's control socket, which come after the program's output.
  std::optional<uint32_t> speaks_for() const;

  // The next frame for the daemon, or nothing more just now.
  std::optional<std::string> next_report();
  // The close has been handed out.
  bool over() const { return phase_ == Phase::kOver; }

  void add_watches(PollSet& polls) const;
  void handle(short ready);
  // A child of the agent has ended: perhaps its worker.
  void reaped(pid_t pid, int wait_status);
  // The leaf of its worker, once: from then on that is the caller's to end.
  std::optional<uint32_t> release_worker();

 private:
  enum class Phase : uint8_t { kConnecting, kOpen, kClosing, kOver };

  void close_with(int system_errno, std::string_view operation);
  void connect(int family);
  void connected(int system_errno);
  void flush();
  void close_if_ended();
  std::optional<std::string> next_data();
  std::optional<std::string> next_credit();

  uint32_t number_;
  Phase phase_ = Phase::kOpen;
  Fd socket_;
  std::optional<Worker> worker_;
  std::optional<Control> control_;
  std::optional<int> wait_status_;
  uint16_t port_ = 0;
  int family_ = 0;
  ChannelClose close_;

  uint64_t sent_ = 0;
  uint64_t credit_ = kChannelWindowBytes;
  bool readable_ = false;
  bool read_ended_ = false;
  bool end_told_ = false;

  std::string waiting_;  // from the daemon, not yet in the socket
  size_t head_ = 0;
  uint64_t received_ = 0;
  uint64_t granted_ = kChannelWindowBytes;
  bool input_ended_ = false;  // the daemon has said so
  bool write_ended_ = false;  // the socket takes nothing more
};

}  // namespace atl::agent
