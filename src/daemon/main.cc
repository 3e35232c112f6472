// atolld: reads HTTP, unprivileged. Everything that needs root is asked of atoll-warden.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/options.h"

namespace {

// A connection, a stream or a log is a descriptor, and the usual soft limit of 1024 only protects
// programs that use select(2).
void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    atl::log_warning("descriptor limit", {atl::Error::system("setrlimit")});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version")
    return puts("atolld " ATOLL_VERSION) < 0 ? 1 : 0;
  atl::configure_log("atolld", atl::LogLevel::kInfo);
  if (geteuid() == 0 || getuid() == 0) {
    fprintf(stderr, "atolld: refusing to run as root; `atoll up` starts it as user atoll\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  auto options = atl::daemon::parse_options(std::vector<std::string>(argv + 1, argv + argc));
  if (!options) {
    fprintf(stderr, "atolld: %s\n", options.error().message().c_str());
    return 2;
  }
  using Mode = atl::daemon::Options::Mode;
  bool serves = options->mode == Mode::kServe;
  auto done = serves                          ? atl::daemon::run_daemon(*options)
              : options->mode == Mode::kCheck ? atl::daemon::check_daemon(*options)
                                              : atl::daemon::adopt_orphans(*options);
  if (done) return 0;
  if (!serves) {
    fprintf(stderr, "%s\n", done.error().message().c_str());
    return 1;
  }
  atl::log_error("cannot run", {done.error()});
  return 1;
}
