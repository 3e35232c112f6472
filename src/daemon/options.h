// The command line of atolld, written by the supervisor.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/traffic.h"
#include "base/result.h"
#include "http/server.h"
#include "http/tls_listener.h"
#include "isolate/monitor.h"

namespace atl::daemon {

struct Options {
  // --check, --adopt-orphans: look at the state, or join it, and end.
  enum class Mode : unsigned char { kServe, kCheck, kAdopt } mode = Mode::kServe;
  std::string state_directory;
  std::string run_directory;
  std::string listen_address = "127.0.0.1";
  unsigned short listen_port = 4700;
  bool allow_remote = false;
  std::set<std::string, std::less<>> host_names;
  // The budget of the host; 0 is replaced by a default that depends on the machine.
  uint64_t max_sandboxes = 2000;
  uint64_t memory_budget_bytes = 0;
  uint64_t disk_budget_bytes = 0;
  bool warm_pool = true;           // keep isolates ready
  uint64_t kvm_trial_seconds = 8;  // 0: not used; see sandbox/wall_trials.h
  // The only one that gVisor may have; nothing: the first that runs.
  std::optional<isolate::Platform> gvisor_platform;
  uint64_t log_budget_bytes = 8ull << 30;  // what all execs printed, together
  api::TrafficLimits traffic;
  http::Limits http_limits;
  // "<port>-<id>.<domain>" names ports of sandboxes; empty: beneath whatever host was asked.
  std::string domain;
  // A second listener, with TLS; no address: none.
  http::TlsAddress tls_listen;
  http::TlsFiles tls_files;
};

// Refuses what it does not know, and an address beyond loopback unless --allow-remote is given.
Result<Options> parse_options(const std::vector<std::string>& arguments);

}  // namespace atl::daemon
