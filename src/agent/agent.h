// The agent: process 1 of the sandbox. One loop that accepts the daemon, does what it asks, reads
// what programs write, and reaps every orphan. It works on without a daemon.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "agent/birth.h"
#include "agent/channel_table.h"
#include "agent/connection.h"
#include "agent/exec_table.h"
#include "agent/poll_set.h"
#include "agent/rest_note.h"
#include "agent/sudo_desk.h"

namespace atl::agent {

class Agent {
 public:
  static Result<Agent> create(Birth birth);

  // Returns only with an error after which process 1 cannot do its work. The sandbox ends with it,
  // so it first lets what runs end and be told.
  Error run();

 private:
  struct Parts;
  Agent(Birth birth, Parts parts);

  void add_watches();
  void handle(Watch watch, short ready);
  void accept_newest();
  void receive();
  // False: the frame breaks the protocol.
  bool obey(const Frame& frame);
  bool welcome(std::string_view payload);
  bool acknowledge_exit(uint32_t number);
  // Of execs and channels in turn.
  std::optional<std::string> next_report();
  void report();
  void drop_connection();
  void children_ended();
  void tell_rest();
  // In a machine that begins with the memory of another: takes the nonce of this one.
  void be_reborn();

  AgentPlace place_;
  Fd listener_;
  Fd children_;  // signalfd of SIGCHLD
  std::array<unsigned char, kNonceBytes> nonce_;
  std::unique_ptr<Launcher> launcher_;  // of both tables
  ExecTable execs_;
  ChannelTable channels_;
  bool channels_turn_ = false;
  SudoDesk sudo_;
  std::optional<Connection> connection_;
  PollSet polls_;
  bool more_to_reap_ = false;
  Fd rest_;                   // and where a new nonce comes from
  uint64_t connections_ = 0;  // ever
  RestNote told_;
};

}  // namespace atl::agent
