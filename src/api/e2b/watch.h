// Watching directories: WatchDir as a stream, and watchers whose events are fetched now and then.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/e2b/plane.h"
#include "api/router.h"
#include "sandbox/file_call.h"

namespace atl::api::e2b {

// The watchers that clients poll, in memory: after a restart they are gone, which is an error their
// clients see. What happened stays inside the sandbox until it is fetched, within the credit of the
// channel; beyond it changes are lost, and that is told.
//
// One thread. Outlives the router's calls.
class Watchers {
 public:
  struct Watcher {
    std::shared_ptr<sandbox::Sandbox> sandbox;
    std::unique_ptr<sandbox::FileCall> changes;
    std::string root;
    bool busy = false;  // one call at a time reads
  };

  // kExhausted: the sandbox has its full number.
  Result<std::string> add(Watcher watcher);
  // Null also for another sandbox's.
  std::shared_ptr<Watcher> find(const sandbox::Sandbox& sandbox, const std::string& id) const;
  void remove(const std::string& id) { watchers_.erase(id); }

 private:
  // Those of sandboxes that have gone.
  void sweep();

  std::map<std::string, std::shared_ptr<Watcher>> watchers_;  // shared with the call that reads
};

void add_watch_routes(Router& router, Plane plane, Watchers& watchers);

}  // namespace atl::api::e2b
