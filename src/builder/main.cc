// atoll-builder: makes images. Root, but without a network, a parser or a byte of foreign data in
// this process: everything that looks at what came from elsewhere runs in jails (jail.h).
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "builder/one_shot.h"
#include "builder/options.h"
#include "builder/service.h"
#include "linux/capabilities.h"
#include "linux/lock_file.h"

namespace {

using namespace atl;

// SYS_ADMIN: namespaces and mounts. SETUID, SETGID: id maps. CHOWN, DAC_OVERRIDE, FOWNER: work
// directories belong to the jails. KILL: so do the processes in them.
constexpr uint64_t kCapabilities = linux::capability_mask(
    {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL});

Result<void> run(const builder::Options& options) {
  if (geteuid() != 0) return Error(Code::kDenied, "the builder must be started by root");
  bool once = !options.out_dir.empty();
  ATOLL_TRY(builder::Workshop workshop, builder::Workshop::open(options.state_dir));
  std::string lock_path =
      once ? workshop.directory + "/once.lock" : options.run_dir + "/builder.lock";
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock, linux::LockFile::acquire(lock_path));
  if (unshare(CLONE_NEWNET) != 0) return Error::system("leave the host's network");
  ATOLL_TRY_VOID(linux::limit_bounding_set(kCapabilities));
  ATOLL_TRY_VOID(linux::set_capabilities({.effective = kCapabilities, .permitted = kCapabilities}));
  ATOLL_TRY_VOID(builder::remove_leftovers(workshop));
  if (once) return builder::build_once(workshop, options.out_dir);
  watch_crash_directory(options.run_dir, "atoll-builder");
  ATOLL_TRY(Fd run_directory, open_file(options.run_dir, O_RDONLY | O_DIRECTORY));
  return builder::Service(workshop, std::move(run_directory), options.client_uid).run();
}

}  // namespace

int main(int argc, char** argv) {
  umask(0022);
  signal(SIGPIPE, SIG_IGN);  // standard error may be a pipe whose reader has died
  configure_log("atoll-builder", LogLevel::kInfo);
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    printf("atoll-builder %s\n", ATOLL_VERSION);
    return 0;
  }
  auto options = builder::parse_options({argv + 1, argv + argc});
  if (!options) {
    fprintf(stderr, "atoll-builder: %s\n%.*s\n", options.error().message().c_str(),
            static_cast<int>(builder::kUsage.size()), builder::kUsage.data());
    return 2;
  }
  // For fetch stages, which inherit it.
  if (!options->npm_registry.empty())
    setenv("npm_config_registry", options->npm_registry.c_str(), 1);
  if (!options->go_proxy.empty()) setenv("GOPROXY", options->go_proxy.c_str(), 1);
  Result<void> result = run(*options);
  if (result) return 0;
  log_error("the builder stops", {result.error()});
  return 1;
}
