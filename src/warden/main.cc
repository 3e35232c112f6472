// atoll-warden: the only part of Atoll that runs as root. See options.h for its command line,
// protocol.h for what it may be asked, service.h for how it answers.
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/crash_point.h"
#include "base/log.h"
#include "warden/options.h"
#include "warden/removal.h"
#include "warden/service.h"
#include "warden/startup.h"

namespace {

using namespace atl;

Result<void> run(const warden::Options& options) {
  if (geteuid() != 0) return Error(Code::kDenied, "the warden must be started by root", EPERM);
  ATOLL_TRY(warden::Host host, warden::open_host(options));
  ATOLL_TRY(auto lock, warden::take_lock(host));
  ATOLL_TRY_VOID(warden::enter_own_namespaces());
  if (options.mode == warden::Mode::kRemoveAll) return warden::remove_all(host);
  watch_crash_directory(options.run_dir, "atoll-warden");
  ATOLL_TRY_VOID(warden::prepare(host, options));
  ATOLL_TRY_VOID(warden::drop_capabilities());
  return warden::Service(host).run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version")
    return puts("atoll-warden " ATOLL_VERSION) < 0 ? 1 : 0;
  umask(0022);
  signal(SIGPIPE, SIG_IGN);  // standard error may be a pipe whose reader has died
  configure_log("atoll-warden", LogLevel::kInfo);
  auto options = warden::parse_options({argv + 1, argv + argc});
  if (!options) {
    fprintf(stderr, "atoll-warden: %s\n%.*s\n", options.error().message().c_str(),
            static_cast<int>(warden::kUsage.size()), warden::kUsage.data());
    return 2;
  }
  Result<void> result = run(*options);
  if (result) return 0;
  log_error("the warden stops", {result.error()});
  return 1;
}
