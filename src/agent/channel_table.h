// All open channels. They belong to one connection of the daemon: when it goes, they go, and what
// ran for them is ended.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/channel.h"
#include "agent/exec_table.h"
#include "agent/launcher.h"
#include "agent/poll_set.h"
#include "agent/remains.h"

namespace atl::agent {

class ChannelTable {
 public:
  // Workers get leaves in `cgroup`, with numbers that no exec has.
  ChannelTable(Fd cgroup, Launcher& launcher) : cgroup_(std::move(cgroup)), launcher_(launcher) {}

  // From now on its files can be had still (still_files.h): who does that is behind `notes`, which
  // stays the caller's.
  void offer_still_files(int notes) { notes_ = notes; }

  // A frame of channel_protocol.h. One for a channel that is gone meanwhile is nothing. False: it
  // breaks the protocol.
  bool obey(const Frame& frame, ExecTable& execs);
  void drop_all();

  // The next frame for the daemon; the channels take turns.
  std::optional<std::string> next_report(ExecTable& execs);

  void add_watches(PollSet& polls) const;
  // False: the event is not for a channel.
  bool handle(Watch watch, short ready);
  void reaped(const ReapedChild& child);
  std::optional<SteadyTime> next_deadline() const;
  void check_deadlines();
  // None is open, and nothing is left of those that were.
  bool is_empty() const { return channels_.empty() && remains_.empty(); }

 private:
  bool open(const Frame& frame, ExecTable& execs);
  void open_files(uint32_t number, const FileRequest& request, std::string_view payload);
  void open_port(uint32_t number, uint16_t port);
  void open_control(uint32_t number, Result<Fd> socket, uint32_t exec);
  bool pass_on(Channel& channel, const Frame& frame);
  // Ends what is in the leaf and removes it, if need be later.
  void bury(uint32_t leaf);
  void bury_worker_of(Channel& channel);

  Fd cgroup_;
  Launcher& launcher_;
  int notes_ = -1;
  std::map<uint32_t, Channel> channels_;
  std::map<uint32_t, Remains> remains_;  // by leaf
  uint32_t last_reported_ = 0;
  uint32_t workers_ = 0;  // ever started
};

}  // namespace atl::agent
