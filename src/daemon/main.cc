// atolld: reads HTTP, unprivileged. Everything that needs root is asked of atoll-warden.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/options.h"

int main(int argc, char** argv) {
  atl::configure_log("atolld", atl::LogLevel::kInfo);
  if (geteuid() == 0 || getuid() == 0) {
    fprintf(stderr, "atolld: refusing to run as root; `atoll up` starts it as user atoll\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  auto options = atl::daemon::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  if (!options) {
    fprintf(stderr, "atolld: %s\n", options.error().message().c_str());
    return 2;
  }
  auto done = atl::daemon::run_daemon(*options);
  if (done) return 0;
  atl::log_error("cannot run", {done.error()});
  return 1;
}
