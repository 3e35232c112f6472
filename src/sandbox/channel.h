// Channel: one operation inside a sandbox as two byte streams with credit
// (agent/channel_protocol.h). Channels: those of one sandbox, and what each frame of its agent does
// to them.
//
// Destroying a Channel gives it up. When the agent's stream breaks, every open channel fails with
// kUnavailable; whoever uses it tells its own caller, and nothing is repeated here. The agent's
// bytes are hostile: data beyond the credit, after the end or for a channel that it closed break
// the protocol, which is an error of handle().
//
// One thread. A Channel may be read by one coroutine and written by another, and may outlive its
// Channels.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "agent/channel_protocol.h"
#include "agent/file_protocol.h"
#include "base/clock.h"
#include "isolate/agent_link.h"
#include "isolate/event.h"

namespace atl::sandbox {

class Channel {
 public:
  struct State;
  struct Table;
  Channel(std::shared_ptr<Table> table, std::shared_ptr<State> state);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The next bytes, in the order they came, at most kChannelWindowBytes; empty at the end. An error
  // carries the agent's errno and operation. `deadline`: kTimeout when nothing has come by then.
  Task<Result<std::string>> read(SteadyTime deadline);
  // Returns when all bytes are handed to the stream, within the credit. kCancelled when the agent
  // has closed the channel without an error: nobody takes the bytes any more.
  Task<Result<void>> write(std::string_view bytes, SteadyTime deadline);
  void end_writing();
  // What is pending and all that follows fails with kCancelled.
  void abandon();

 private:
  Task<Result<void>> wait_sendable(SteadyTime deadline);

  std::shared_ptr<Table> table_;  // shared with the Channels
  std::shared_ptr<State> state_;  // shared with the table, until the agent's close
};

class Channels {
 public:
  Channels(boost::asio::any_io_executor executor, const Clock& clock);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  // kExhausted when the sandbox has its full number, kUnavailable while no stream is up.
  Result<std::unique_ptr<Channel>> open(const agent::FileRequest& request);
  Result<std::unique_ptr<Channel>> open_port(uint16_t port);
  Result<std::unique_ptr<Channel>> open_control(const agent::OpenControl& open);

  // A stream is up, until link_lost().
  void link_up(std::shared_ptr<isolate::AgentLink> link);
  void link_lost();
  // One kChannel… frame of the agent.
  Result<void> handle(const agent::Frame& frame);

  boost::asio::any_io_executor executor() const;

  // Those that somebody holds, which keep the sandbox busy.
  size_t size() const;
  // When the last one that was held ended; before any time if none has.
  SteadyTime last_end() const;
  // How many file operations there ever were.
  size_t file_operations() const { return file_operations_; }

 private:
  Result<uint32_t> free_number();
  std::unique_ptr<Channel> enter(uint32_t number, std::string open_frame);

  std::shared_ptr<Channel::Table> table_;
  size_t file_operations_ = 0;
};

}  // namespace atl::sandbox
