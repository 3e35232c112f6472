// Watchdog: systemd's, which kills a service of Type=notify of whose loop it does not hear, see
// sd_notify(3). Without one every call does nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"

namespace atl::cli {

class Watchdog {
 public:
  // $NOTIFY_SOCKET; empty: nobody wants to hear anything.
  explicit Watchdog(std::string address);

  void tell_ready() { tell("READY=1"); }
  void tell_stopping() { tell("STOPPING=1"); }
  // That the main loop turns; told once a second at most.
  void tell_alive(SteadyTime now);

 private:
  // One that does not listen restarts what it does not hear of; there is nothing to do about it.
  void tell(std::string_view message);

  std::string address_;
  Fd socket_;
  SteadyTime next_{};
};

}  // namespace atl::cli
