// The warden's loop: takes connections from the one allowed user, checks each message and forks a
// helper that does the work and answers on the connection itself. The loop never blocks on anything
// but poll.
//
// Single thread. Isolates end up as children of this process (it is their subreaper) and are reaped
// here; they do not die with it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "linux/heartbeat.h"
#include "warden/host.h"
#include "warden/kernel_memory_guard.h"
#include "warden/pool_watch.h"
#include "warden/protocol.h"

namespace atl::warden {

inline constexpr size_t kMaxConnections = 8;
inline constexpr size_t kMaxHelpers = 8;  // beyond, no message is read until one is done

class Service {
 public:
  explicit Service(Host& host)
      : host_(host),
        pool_watch_(host),
        kernel_memory_(host, watched_growth(host.kernel_memory_growth)) {}

  // Serves until SIGTERM, then waits for the helpers.
  Result<void> run();

 private:
  struct Connection {
    uint64_t number;  // never used twice, unlike a descriptor
    Fd socket;
  };
  struct Errand {
    pid_t pid;
    uint64_t connection;
    Request request;
  };

  Result<void> open_sockets();
  Result<void> wait_and_dispatch();
  void take_signals();
  void reap();
  void accept_connection();
  void receive(uint64_t number);
  void start_helper(const Message& message, uint64_t number);
  [[noreturn]] void run_helper(const Message& message, const Connection* connection);
  // A child that is none of a client's keeps no socket of ours.
  void close_sockets();
  void watch_pool();
  void finish_helper(const Errand& helper, int status);
  Connection* find_connection(uint64_t number);
  void close_connection(uint64_t number);

  const Host& host_;
  PoolWatch pool_watch_;
  KernelMemoryGuard kernel_memory_;
  Fd listener_, signals_;
  std::optional<linux::Heartbeat> heartbeat_;
  std::vector<Connection> connections_;
  std::vector<Errand> helpers_;
  uint64_t next_connection_ = 1;
  bool stopping_ = false;
};

}  // namespace atl::warden
