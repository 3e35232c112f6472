// Where an Atoll lives on this host: a state directory that survives a restart and a run directory
// that does not. Everything else is a fixed name beneath the two.
#pragma once

#include <string>

namespace atl::cli {

struct Places {
  std::string state = "/var/lib/atoll";
  std::string run = "/run/atoll";

  // --state-dir D keeps everything in one place, so that several can live side by side.
  static Places beneath(const std::string& state_directory);

  std::string supervisor_lock() const { return state + "/supervisor.lock"; }
  std::string logs() const { return state + "/logs"; }
  std::string images() const { return state + "/images"; }
  std::string templates() const { return state + "/templates"; }
  std::string receipt_public_key() const { return state + "/receipt.pub"; }
  // Owned by the user that atolld runs as: nothing in them may be trusted or followed by root.
  std::string daemon_state() const { return state + "/daemon"; }
  std::string local_key() const { return daemon_state() + "/local.key"; }
  std::string daemon_run() const { return run + "/daemon"; }
  std::string agents() const { return run + "/agents"; }
  std::string address() const { return daemon_run() + "/address"; }
  std::string daemon_lock() const { return daemon_run() + "/atolld.lock"; }

  std::string warden_lock() const { return run + "/warden.lock"; }
  std::string warden_socket() const { return run + "/warden.sock"; }
  // How the last `atoll restart` went, see replacement.h.
  std::string replacement() const { return run + "/replacement.json"; }
};

// Owned as daemon_state() is: what its database last said of itself, apart from that.
inline std::string epoch_state(const Places& places) { return places.state + "/epoch"; }

// Owned by the user that atoll-egress runs as.
inline std::string egress_state(const Places& places) { return places.state + "/egress"; }
inline std::string egress_run(const Places& places) { return places.run + "/egress"; }
inline std::string egress_lock(const Places& places) { return egress_run(places) + "/egress.lock"; }

}  // namespace atl::cli
