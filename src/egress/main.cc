// atoll-egress: the only way out of sandboxes. Unprivileged; it reads what sandboxes send and dials
// the internet, so it holds nothing that it does not need.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "async/heartbeat.h"
#include "async/spawn.h"
#include "base/file.h"
#include "base/log.h"
#include "egress/control.h"
#include "egress/options.h"
#include "egress/policy_file.h"
#include "egress/server_trust.h"
#include "linux/file_rules.h"
#include "linux/lock_file.h"
#include "linux/unix_socket.h"

namespace {

using namespace atl;
namespace asio = boost::asio;

constexpr int kBacklog = 64;

void raise_descriptor_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log_warning("descriptor limit", {Error::system("setrlimit")});
}

// Its own directory, and what the resolver reads. Where there is no Landlock, permissions alone
// hold it.
Result<void> confine(int state) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Error::system("set no_new_privs");
  ATOLL_TRY(int abi, linux::landlock_abi());
  if (abi == 0) return {};
  uint64_t all = linux::file_rights(abi);
  ATOLL_TRY(Fd rules, linux::make_file_rules(all));
  ATOLL_TRY_VOID(linux::allow_beneath(rules.get(), state, all));
  ATOLL_TRY(Fd etc, open_file("/etc", O_PATH | O_DIRECTORY));
  // Read a file, list a directory.
  constexpr uint64_t kReading = 1ull << 2 | 1ull << 3;
  ATOLL_TRY_VOID(linux::allow_beneath(rules.get(), etc.get(), kReading));
  return linux::take_file_rules(rules.get());
}

Result<std::optional<egress::Policy>> read_ceiling(const std::string& path) {
  auto file = open_file(path, O_RDONLY);
  if (!file && file.error().system_errno() == ENOENT) return std::optional<egress::Policy>();
  if (!file) return std::move(file).error();
  struct stat status;
  if (fstat(file->get(), &status) != 0) return Error::system("stat " + path);
  if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Code::kDenied, path + " must belong to root and be writable by nobody else");
  ATOLL_TRY(std::string text, read_all(file->get(), egress::kMaxPolicyFileBytes));
  ATOLL_TRY(egress::Policy policy, egress::parse_policy_file(text, path));
  if (policy.budget.is_bounded() || policy.mode != egress::Mode::kEnforce || policy.upstream)
    return Error(Code::kInvalid, path + " is a ceiling: without budget, mode and upstream");
  return std::optional(std::move(policy));
}

Result<Fd> listen(const std::string& directory) {
  ATOLL_TRY(Fd run, open_file(directory, O_RDONLY | O_DIRECTORY));
  // Left by one that was killed; the lock proves that it is dead.
  if (unlinkat(run.get(), egress::kSocketName, 0) != 0 && errno != ENOENT)
    return Error::system("unlink an old socket");
  ATOLL_TRY(Fd listener, linux::listen_at(run.get(), egress::kSocketName,
                                          SOCK_SEQPACKET | SOCK_NONBLOCK, kBacklog));
  // Who may speak is decided by the peer's user, not by the file.
  if (fchmodat(run.get(), egress::kSocketName, 0666, 0) != 0)
    return Error::system("chmod the socket");
  return listener;
}

Result<linux::Heartbeat> open_heartbeat(const std::string& directory) {
  ATOLL_TRY(Fd run, open_file(directory, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(auto heartbeat, linux::Heartbeat::open_at(run.get(), "atoll-egress", geteuid()));
  // As the socket of its calls: nobody but atolld and root can reach this directory.
  std::string name = linux::heartbeat_name("atoll-egress");
  if (fchmodat(run.get(), name.c_str(), 0666, 0) != 0) return Error::system("chmod the heartbeat");
  return heartbeat;
}

Result<void> run(const egress::Options& options) {
  if (geteuid() == 0 || getuid() == 0)
    return Error(Code::kDenied, "refusing to run as root; `atoll up` starts it as its own user");
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock,
            linux::LockFile::acquire(options.run_directory + "/egress.lock"));
  ATOLL_TRY(auto ceiling, read_ceiling(options.ceiling));
  ATOLL_TRY(auto upstream, egress::read_upstream(options.upstream));
  ATOLL_TRY(auto retention, egress::read_retention(options.retention));
  ATOLL_TRY(Fd state, open_file(options.state_directory, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(auto client_tls,
            egress::make_client_context(egress::kHostAuthorities, options.authorities));
  ATOLL_TRY(Fd listener, listen(options.run_directory));
  ATOLL_TRY(auto heartbeat, open_heartbeat(options.run_directory));
  ATOLL_TRY_VOID(confine(state.get()));
  ATOLL_TRY(auto secrets, egress::SecretStore::open(state.get()));
  egress::PipePool pipes;
  egress::Courtesy courtesy;
  egress::Descriptors descriptors;
  egress::PendingChanges changes;
  asio::io_context context(1);
  ATOLL_TRY(auto resolver, egress::Resolver::create(context.get_executor(), options.resolvers));
  egress::Surroundings surroundings{.executor = context.get_executor(),
                                    .directory = state.get(),
                                    .resolver = *resolver,
                                    .pipes = pipes,
                                    .courtesy = courtesy,
                                    .descriptors = descriptors,
                                    .changes = changes,
                                    .ceiling = ceiling ? &*ceiling : nullptr,
                                    .upstream = upstream ? &*upstream : nullptr,
                                    .client_tls = &client_tls,
                                    .secrets = &secrets,
                                    .retention = retention};
  egress::Control control(surroundings, std::move(listener), options.client_uid);
  asio::signal_set signals(context, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code, int) {
    control.close_all();
    context.stop();
  });
  // detached: the process owns it; ended by context.stop()
  spawn(context.get_executor(), control.run());
  // detached: as the other
  spawn(context.get_executor(), control.end_idle());
  // detached: the process owns it, too
  spawn(context.get_executor(), keep_beating(std::move(heartbeat)));
  log_info("serving", {{"client_uid", options.client_uid},
                       {"ceiling", ceiling ? options.ceiling.c_str() : "none"},
                       {"upstream", upstream ? options.upstream.c_str() : "none"}});
  context.run();
  log_info("stopped");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version")
    return puts("atoll-egress " ATOLL_VERSION) < 0 ? 1 : 0;
  umask(0077);
  signal(SIGPIPE, SIG_IGN);
  configure_log("atoll-egress", LogLevel::kInfo);
  raise_descriptor_limit();
  auto options = egress::parse_options({argv + 1, argv + argc});
  if (!options) {
    fprintf(stderr, "atoll-egress: %s\n%s\n", options.error().message().c_str(),
            egress::kUsage.data());
    return 2;
  }
  Result<void> result = run(*options);
  if (result) return 0;
  log_error("egress stops", {result.error()});
  return 1;
}
