// Health: what this server stands on, as a list of checks with names, and the routes that tell it.
// Whoever looks after one of them reports what it sees; that never waits, so that neither does
// GET /readyz, which anybody may ask.
//
// One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/router.h"
#include "base/clock.h"

namespace atl::api {

class Health {
 public:
  explicit Health(const Clock& clock) : clock_(clock) {}

  struct Check {
    std::string name;     // one plain word: "warden", "pool", "disk"
    std::string trouble;  // for people, anybody's to read: no path and no id; empty: it is well
    WallTime since;       // that it is well, or that it is not
  };

  // To be called whenever it was looked at, also when nothing changed.
  void report(std::string_view name, std::string_view trouble);
  void report_well(std::string_view name) { report(name, {}); }

  bool is_well() const;
  // In the order in which they were first reported.
  const std::vector<Check>& checks() const { return checks_; }

 private:
  const Clock& clock_;
  std::vector<Check> checks_;
};

// Routes that need no key: is the process up, and is it ready for work? Both must outlive it.
void add_health_routes(Router& router, const Health& health);

}  // namespace atl::api
