// Heartbeat: whether the main loop of a process turns. The process listens on a socket of its own,
// and its loop answers whoever connects with one byte; nothing else in it does. One that is
// stopped, that is blocked or that does not come to the end of a step answers nobody, and the
// kernel says at once when there is none.
//
// HeartbeatWatch is the other side. It judges by the time that its owner gives it (LivedTime).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

inline std::string heartbeat_name(const std::string& program) { return program + ".heartbeat"; }

class Heartbeat {
 public:
  // The socket `<program>.heartbeat` in an open directory, of mode 0600: root may ask, and `asker`.
  // Replaces what a dead process has left: the caller holds the lock that proves it dead.
  static Result<Heartbeat> open_at(int directory, const std::string& program, uid_t asker);

  // Readable while somebody asks.
  int fd() const { return listener_.get(); }
  // Answers all who ask; to be called by the main loop. Works without a free descriptor.
  void beat();
  // For a child that goes on without the loop.
  void close();

 private:
  Heartbeat(Fd listener, Fd reserve)
      : listener_(std::move(listener)), reserve_(std::move(reserve)) {}

  Fd listener_;
  Fd reserve_;  // given up for the moment in which no other is free
};

class HeartbeatWatch {
 public:
  using Time = std::chrono::milliseconds;

  HeartbeatWatch(std::string directory, const std::string& program)
      : directory_(std::move(directory)), name_(heartbeat_name(program)) {}

  // Looks for an answer and asks again; to be called about every second or more often, with the
  // time since the last call.
  void look(Time passed);
  // The process was started anew.
  void reset();

  // For how long it has been asked without an answer; 0: it answers, or nobody listens.
  Time silence() const { return silence_; }
  // For how long nobody has listened: the process has ended, or is still starting.
  Time absence() const { return absence_; }
  bool has_answered() const { return has_answered_; }  // since reset()

 private:
  void judge(Time passed);
  void ask(Time passed);

  std::string directory_, name_;
  Fd question_;
  Time silence_{0}, absence_{0};
  bool has_answered_ = false;
};

// Asks once and waits for the answer. kTimeout: there was none; kNotFound: nobody listens.
Result<void> ask_heartbeat(const std::string& directory, const std::string& program,
                           std::chrono::milliseconds limit);

}  // namespace atl::linux
