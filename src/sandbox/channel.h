// Channel: one operation inside a sandbox as two byte streams with credit
// (agent/channel_protocol.h). Channels: those of one sandbox, and what each frame of its agent does
// to them.
//
// Destroying a Channel gives it up. When the agent's stream breaks, every open channel fails with
// kUnavailable; whoever uses it tells its own caller, and nothing is repeated here. The agent's
// bytes are hostile: data beyond the credit, after the end or for a channel that it closed break
// the protocol, which is an error of handle().
//
// One thread. A Channel may be read by one coroutine and written by another.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "agent/channel_protocol.h"
#include "agent/file_protocol.h"
#include "isolate/agent_link.h"
#include "isolate/event.h"

namespace atl::sandbox {

class Channel {
 public:
  struct Shared;
  explicit Channel(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The next bytes, in the order they came; empty at the end. An error carries the agent's errno
  // and operation. `deadline`: kTimeout when nothing has come by then.
  Task<Result<std::string>> read(std::chrono::steady_clock::time_point deadline);
  // Returns when all bytes are handed to the stream, within the credit.
  Task<Result<void>> write(std::string_view bytes, std::chrono::steady_clock::time_point deadline);
  void end_writing();

 private:
  std::shared_ptr<Shared> shared_;
};

class Channels {
 public:
  explicit Channels(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // kExhausted when the sandbox has its full number, kUnavailable while no stream is up.
  Result<std::unique_ptr<Channel>> open(const agent::FileRequest& request);
  Result<std::unique_ptr<Channel>> open_port(uint16_t port);

  // A stream is up, until link_lost().
  void link_up(std::shared_ptr<isolate::AgentLink> link);
  void link_lost();
  // One kChannel… frame of the agent.
  Result<void> handle(const agent::Frame& frame);
  // Open ones, which keep the sandbox busy.
  size_t size() const { return open_.size(); }

 private:
  boost::asio::any_io_executor executor_;
  std::shared_ptr<isolate::AgentLink> link_;
  std::map<uint32_t, std::shared_ptr<Channel::Shared>> open_;
  uint32_t next_ = 1;
};

}  // namespace atl::sandbox
