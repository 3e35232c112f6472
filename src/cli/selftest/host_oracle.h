// HostOracle: says whether anything on the host changed, before and after each victim, without
// asking the victim. It holds the canaries, and knows what victims are told about them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/places.h"
#include "cli/selftest/canary_listeners.h"
#include "cli/selftest/canary_process.h"
#include "cli/selftest/host_facts.h"
#include "cli/selftest/kernel_log.h"
#include "cli/selftest/watched_files.h"

namespace atl::cli::selftest {

struct HostChanges {
  std::vector<std::string> canaries = {};  // of what nobody but a hostile program touches
  std::vector<std::string> of_all = {};    // of what others on this host change, too
};

class HostOracle {
 public:
  // Makes the canaries, in a directory of their own. Forks: call it before there are threads.
  static Result<std::unique_ptr<HostOracle>> create(const Places& places);
  ~HostOracle();
  HostOracle(const HostOracle&) = delete;
  HostOracle& operator=(const HostOracle&) = delete;

  // Where the canaries are, as variables for the victims. Nothing secret.
  const boost::json::object& environment() const { return environment_; }
  // Whether a victim's output holds what only the host knows.
  bool is_leak(std::string_view output) const;

  // From here on a change counts.
  Result<void> begin();
  // What changed since the last call.
  Result<HostChanges> take_changes();
  // The slower comparison, once at the end.
  Result<std::vector<std::string>> find_other_bytes() const;

  // Also from another thread.
  Result<void> remove_directory() const;

 private:
  explicit HostOracle(CanaryProcess process) : process_(std::move(process)) {}
  Result<void> make_files(const Places& places);
  void tell(const Places& places);

  CanaryProcess process_;
  std::string directory_;
  std::vector<std::string> paths_;
  boost::json::object environment_;
  std::unique_ptr<CanaryListeners> listeners_;
  std::unique_ptr<WatchedFiles> files_;
  std::unique_ptr<HostFacts> facts_;
  std::unique_ptr<KernelLog> log_;
};

}  // namespace atl::cli::selftest
