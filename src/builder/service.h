// The builder's loop: takes connections from the one allowed user and forks a process for each
// build, which answers on the connection itself. A connection that is closed ends its build.
//
// Single thread; builds die with it. It parses nothing but a Request.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "builder/build.h"
#include "linux/heartbeat.h"

namespace atl::builder {

inline constexpr size_t kMaxBuilds = 2;  // at the same time; atolld lets the others wait
inline constexpr size_t kMaxConnections = 8;

class Service {
 public:
  // `run`: the run directory, open.
  Service(const Workshop& workshop, Fd run, uid_t client_uid)
      : workshop_(workshop), run_(std::move(run)), client_uid_(client_uid) {}

  // Serves until SIGTERM, then ends every build.
  Result<void> run();

 private:
  struct Connection {
    Fd socket;
    pid_t build = 0;  // 0: nothing was asked yet
    Fd build_pidfd;
    std::string name;  // of the build
  };

  Result<void> open_sockets();
  Result<void> wait_and_dispatch();
  void take_signals();
  void accept_connection();
  // False: the connection is done with.
  bool receive(Connection& connection);
  void start_build(Connection& connection, const Request& request, Fd file, Fd log);
  [[noreturn]] void run_build(Connection& connection, const BuildOrder& order);
  void end_build(Connection& connection);
  void clean_up(std::string name);
  void reap();

  const Workshop& workshop_;
  Fd run_;
  uid_t client_uid_;
  Fd listener_, signals_;
  std::optional<linux::Heartbeat> heartbeat_;
  std::vector<Connection> connections_;
  std::vector<Fd> cleaners_;  // pidfds; until they have ended no other build begins
  bool stopping_ = false;
};

}  // namespace atl::builder
