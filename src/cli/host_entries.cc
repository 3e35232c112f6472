// The commands about the Atoll of this host, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"
#include "cli/size.h"

namespace atl::cli {
namespace {

constexpr uint64_t kLeastPoolBytes = 256ull << 20;

void add_up(CLI::App& app, Typed& typed) {
  app.add_flag("--detach", typed.detach, "Return when it is ready and leave it running");
  app.add_option("--listen", typed.listen, "Where to listen")
      ->capture_default_str()
      ->type_name("IP:PORT");
  app.add_option("--domain", typed.tls.domain, "What <port>-<id>.DOMAIN names ports of")
      ->type_name("DOMAIN");
  app.add_option("--tls-listen", typed.tls.listen, "Where to listen with TLS as well")
      ->type_name("IP:PORT");
  app.add_option("--tls-certificate", typed.tls.certificate, "Certificates of *.DOMAIN, PEM")
      ->type_name("FILE");
  app.add_option("--tls-key", typed.tls.key, "Its key, PEM")->type_name("FILE");
  app.add_flag("--allow-remote", typed.allow_remote, "Allow an address that other hosts can reach");
  app.add_option("--pool-size", typed.pool_size,
                 "How much of the disk a new layer pool takes (default: half of what is free, at "
                 "most 64GiB)")
      ->type_name("SIZE");
  app.add_flag("--no-warm-pool", typed.no_warm_pool, "Keep no isolates ready for creates");
  app.add_option(
         "--kvm-trial", typed.kvm_trial,
         "How long a machine may take to answer before KVM is not used; 0: never (default: 8)")
      ->check(CLI::Range(0, 600))
      ->type_name("SECONDS");
  app.add_option("--gvisor-platform", typed.gvisor_platform,
                 "How gVisor catches system calls (default: systrap, or ptrace if that fails)")
      ->check(CLI::IsMember({"systrap", "ptrace"}))
      ->type_name("PLATFORM");
  app.add_flag("--keep", typed.keep,
               "When stopped by a signal, leave the sandboxes to the next `atoll up`");
  app.add_option("--kernel-memory-growth", typed.kernel_memory_growth)->group("");  // for tests
  app.add_flag("--adopt-orphans", typed.adopt_orphans,
               "Where the database is not that of the files beside it, start all the same and set "
               "aside for a week what it does not name");
  app.add_option("--resume", typed.resumed_for)->group("");  // for the supervisor itself
}

void add_restart(CLI::App& app, Typed& typed) {
  auto* daemon = app.add_flag("--daemon", typed.daemon_only, "Only atolld");
  app.add_flag("--warden", typed.warden_only, "Only the warden")->excludes(daemon);
}

void add_selftest(CLI::App& app, Typed& typed) {
  app.add_option("--only", typed.only, "Run only these attacks")->type_name("NAME");
  app.add_option("--isolation", typed.isolation, "The wall that is attacked (default: jail)")
      ->type_name("KIND")
      ->check(CLI::IsMember({"jail", "gvisor", "microvm"}));
  app.add_flag("--list", typed.list, "List the attacks and run none");
}

void add_backup(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "What to write; must not exist")
      ->required()
      ->type_name("FILE");
  app.add_flag("--without-images", typed.without_images,
               "Leave out images, which can be built again");
}

void add_restore(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "What `atoll backup` wrote")->required()->type_name("FILE");
}

void add_key_create(CLI::App& app, Typed& typed) {
  app.add_option("--tenant", typed.tenant, "Whose key; made if new (default: local)")
      ->type_name("NAME");
  app.add_option("--name", typed.key_name, "What to call the key")->type_name("TEXT");
  app.add_flag("--e2b", typed.e2b_key, "In the form that clients of E2B insist on");
}

void add_key_revoke(CLI::App& app, Typed& typed) {
  app.add_option("key", typed.id, "The id that `atoll key ls` shows")->required()->type_name("KEY");
}

void add_tenant_set(CLI::App& app, Typed& typed) {
  app.add_option("tenant", typed.tenant, "Who (default: local)")->type_name("NAME");
  app.add_option("--e2b-internet", typed.e2b_internet,
                 "What clients of E2B that ask for the internet get: every public name, or none")
      ->check(CLI::IsMember({"allow", "deny"}));
  CLI::Option* upstream =
      app.add_option("--upstream", typed.upstream,
                     "The proxy that all its sandboxes go through whose policy names no other")
          ->type_name("NAME:PORT|none");
  app.add_option("--upstream-secret", typed.upstream_secret,
                 "The tenant's secret with the proxy's name:password")
      ->type_name("SECRET")
      ->needs(upstream);
  app.add_option("--sealed-share", typed.sealed_share,
                 "How much its sealed snapshots may take together (default: 64GiB)")
      ->type_name("SIZE");
}

void add_completion(CLI::App& app, Typed& typed) {
  app.add_option("shell", typed.shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

Result<Command> make_up(const Typed& typed, const CLI::App&) {
  UpCommand up;
  if (typed.detach) up.mode = UpCommand::Mode::kDetached;
  if (typed.allow_remote) up.reach = UpCommand::Reach::kAnywhere;
  up.warm_pool = !typed.no_warm_pool;
  if (!typed.pool_size.empty()) {
    ATOLL_TRY(up.pool_bytes, parse_size(typed.pool_size));
    if (up.pool_bytes < kLeastPoolBytes)
      return Error(Code::kInvalid, "--pool-size must be at least 256MiB");
  }
  up.kvm_trial_seconds = typed.kvm_trial;
  up.gvisor_platform = typed.gvisor_platform;
  if (typed.keep) up.stop = UpCommand::Stop::kKeeps;
  up.kernel_memory_growth = typed.kernel_memory_growth;
  if (typed.adopt_orphans) up.orphans = UpCommand::Orphans::kAdopt;
  up.resumed_for = typed.resumed_for;
  ATOLL_TRY(up.listen, ListenAddress::parse(typed.listen));
  if (!up.listen.is_loopback() && up.reach == UpCommand::Reach::kLoopbackOnly)
    return Error(Code::kInvalid, "other hosts could reach " + up.listen.string() +
                                     ": add --allow-remote if that is meant");
  up.tls = typed.tls;
  using Reach = TlsOptions::Reach;
  ATOLL_TRY_VOID(up.tls.settle(typed.allow_remote ? Reach::kAnywhere : Reach::kLoopbackOnly));
  return Command(std::move(up));
}

Result<Command> make_restart(const Typed& typed, const CLI::App&) {
  using What = RestartCommand::What;
  What what = typed.daemon_only ? What::kDaemon : typed.warden_only ? What::kWarden : What::kBoth;
  return Command(RestartCommand{what});
}

template <typename T>
Result<Command> make_plain(const Typed&, const CLI::App&) {
  return Command(T{});
}

Result<Command> make_selftest(const Typed& typed, const CLI::App&) {
  using Mode = SelftestCommand::Mode;
  Mode mode = typed.list ? Mode::kList : Mode::kRun;
  return Command(SelftestCommand{mode, typed.only, typed.isolation});
}

Result<Command> make_backup(const Typed& typed, const CLI::App&) {
  using Images = BackupCommand::Images;
  Images images = typed.without_images ? Images::kLeaveOut : Images::kHold;
  return Command(BackupCommand{typed.file, images});
}

Result<Command> make_restore(const Typed& typed, const CLI::App&) {
  return Command(RestoreCommand{typed.file});
}

Result<Command> make_key_create(const Typed& typed, const CLI::App&) {
  using Shape = CreateKeyCommand::Shape;
  Shape shape = typed.e2b_key ? Shape::kE2b : Shape::kAtoll;
  return Command(CreateKeyCommand{typed.tenant, typed.key_name, shape});
}

Result<Command> make_key_revoke(const Typed& typed, const CLI::App&) {
  return Command(RevokeKeyCommand{typed.id});
}

Result<Command> make_tenant_set(const Typed& typed, const CLI::App&) {
  if (typed.e2b_internet.empty() && typed.upstream.empty() && typed.sealed_share.empty())
    return Error(Code::kInvalid, "tenant set needs --e2b-internet, --upstream or --sealed-share");
  SetTenantCommand command{typed.tenant, typed.e2b_internet, typed.upstream, typed.upstream_secret,
                           std::nullopt};
  if (!typed.sealed_share.empty()) {
    ATOLL_TRY(command.sealed_bytes, parse_size(typed.sealed_share));
  }
  return Command(std::move(command));
}

Result<Command> make_completion(const Typed& typed, const CLI::App&) {
  return Command(CompletionCommand{typed.shell});
}

constexpr CommandEntry kHostEntries[] = {
    {"up", "Start Atoll on this host (root)",
     "  atoll up --detach\n"
     "  atoll up --listen 127.0.0.1:8080",
     add_up, make_up},
    {"down", "Stop Atoll and remove every sandbox (root)", "  atoll down", nullptr,
     make_plain<DownCommand>},
    {"restart", "Run the programs that are installed now; sandboxes go on (root)",
     "  make install && atoll restart\n"
     "  atoll restart --daemon",
     add_restart, make_restart},
    {"status", "Say what runs; exit code 3 when it is not ready", "  atoll status --json", nullptr,
     make_plain<StatusCommand>},
    {"doctor", "Say what this host offers and what to change; best as root",
     "  atoll doctor\n"
     "  atoll doctor --json",
     nullptr, make_plain<DoctorCommand>},
    {"selftest",
     "Attack this host's Atoll from inside (root); exit code 3 when only the host changed",
     "  atoll selftest\n"
     "  atoll selftest --isolation gvisor\n"
     "  atoll selftest --list",
     add_selftest, make_selftest},
    {"backup", "Write all that must not be lost into one file (root)",
     "  atoll backup atoll-$(date +%F).tar.zst\n"
     "  atoll backup --without-images small.tar.zst",
     add_backup, make_backup},
    {"restore", "Make an empty state directory out of a backup (root)",
     "  atoll restore atoll-2026-11-16.tar.zst", add_restore, make_restore},
    {"key show-local", "Print the key of this host (root)",
     "  export ATOLL_KEY=$(atoll key show-local)", nullptr, make_plain<ShowKeyCommand>},
    {"key create", "Make a key and print it, this once",
     "  atoll key create --tenant acme --name ci\n"
     "  export E2B_API_KEY=$(atoll key create --e2b)",
     add_key_create, make_key_create},
    {"key ls", "List the keys in force", "  atoll key ls", nullptr, make_plain<ListKeysCommand>},
    {"key revoke", "End a key", "  atoll key revoke k3", add_key_revoke, make_key_revoke},
    {"tenant set", "Say what a tenant may do",
     "  atoll tenant set --e2b-internet allow\n"
     "  atoll tenant set acme --e2b-internet deny\n"
     "  atoll tenant set acme --upstream proxy.example.com:3128 --upstream-secret PROXY_LOGIN\n"
     "  atoll tenant set acme --sealed-share 10GiB",
     add_tenant_set, make_tenant_set},
    {"tenant ls", "List the tenants", "  atoll tenant ls", nullptr, make_plain<ListTenantsCommand>},
    {"completion", "Print what makes a shell complete commands, options and sandboxes",
     "  source <(atoll completion bash)\n"
     "  atoll completion zsh >\"${fpath[1]}/_atoll\"\n"
     "  atoll completion fish >~/.config/fish/completions/atoll.fish",
     add_completion, make_completion},
    {"version", "Print the version", "  atoll version", nullptr, make_plain<VersionCommand>},
};

}  // namespace

CommandGroup host_entries() { return {"This host", kHostEntries}; }

}  // namespace atl::cli
