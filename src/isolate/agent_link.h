// AgentLink: one connection to an agent, as frames. Reading and sending are independent; sending
// never waits, because most of what atolld sends is small, but the queue is bounded and a full one
// ends the link. Who sends much waits for room first.
//
// Owned by one coroutine (see sandbox/sandbox.h), which reads. send() may be called by others on
// the same thread. After close() or an error every operation fails and the owner makes a new link.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "agent/protocol.h"
#include "base/result.h"
#include "isolate/driver.h"

namespace atl::isolate {

class AgentLink {
 public:
  explicit AgentLink(AgentSocket socket);
  ~AgentLink();
  AgentLink(const AgentLink&) = delete;
  AgentLink& operator=(const AgentLink&) = delete;

  // The next frame; its payload is valid until the next read().
  Task<Result<agent::Frame>> read();
  // True while a whole frame is already here, so that acknowledgements can wait for the last of a
  // batch.
  bool has_buffered_frame();
  void send(std::string frame);
  // With a descriptor beside it, which stays the caller's; returns when it is sent.
  Task<Result<void>> send_with(std::string frame, int descriptor);
  // Returns when little is queued; false when `deadline` came first or the link is closed.
  Task<bool> wait_room(std::chrono::steady_clock::time_point deadline);
  // False: the agent has closed its end, or died, which only a reader would notice else.
  bool is_up() const;
  void close();

 private:
  struct Shared;
  static void begin_writing(const std::shared_ptr<Shared>& shared);
  static Task<void> write_queue(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;  // the writer task keeps it alive until it has noticed the close
};

}  // namespace atl::isolate
