// The commands about the Atoll of this host, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_up(CLI::App& app, Typed& typed) {
  app.add_flag("--detach", typed.detach, "Return when it is ready and leave it running");
  app.add_option("--listen", typed.listen, "Where to listen")
      ->capture_default_str()
      ->type_name("IP:PORT");
  app.add_flag("--allow-remote", typed.allow_remote, "Allow an address that other hosts can reach");
}

void add_selftest(CLI::App& app, Typed& typed) {
  app.add_option("--only", typed.only, "Run only these attacks")->type_name("NAME");
  app.add_flag("--list", typed.list, "List the attacks and run none");
}

void add_key_create(CLI::App& app, Typed& typed) {
  app.add_option("--tenant", typed.tenant, "Whose key; made if new (default: local)")
      ->type_name("NAME");
  app.add_option("--name", typed.key_name, "What to call the key")->type_name("TEXT");
}

void add_key_revoke(CLI::App& app, Typed& typed) {
  app.add_option("key", typed.id, "The id that `atoll key ls` shows")->required()->type_name("KEY");
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
  ATOLL_TRY(up.listen, ListenAddress::parse(typed.listen));
  if (!up.listen.is_loopback() && up.reach == UpCommand::Reach::kLoopbackOnly)
    return Error(Code::kInvalid, "other hosts could reach " + up.listen.string() +
                                     ": add --allow-remote if that is meant");
  return Command(std::move(up));
}

template <typename T>
Result<Command> make_plain(const Typed&, const CLI::App&) {
  return Command(T{});
}

Result<Command> make_selftest(const Typed& typed, const CLI::App&) {
  using Mode = SelftestCommand::Mode;
  return Command(SelftestCommand{typed.list ? Mode::kList : Mode::kRun, typed.only});
}

Result<Command> make_key_create(const Typed& typed, const CLI::App&) {
  return Command(CreateKeyCommand{typed.tenant, typed.key_name});
}

Result<Command> make_key_revoke(const Typed& typed, const CLI::App&) {
  return Command(RevokeKeyCommand{typed.id});
}

Result<Command> make_completion(const Typed& typed, const CLI::App&) {
  return Command(CompletionCommand{typed.shell});
}

constexpr CommandEntry kEntries[] = {
    {"up", "Start Atoll on this host (root)",
     "  atoll up --detach\n"
     "  atoll up --listen 127.0.0.1:8080",
     add_up, make_up},
    {"down", "Stop Atoll and remove every sandbox (root)", "  atoll down", nullptr,
     make_plain<DownCommand>},
    {"status", "Say what runs; exit code 3 when it is not ready", "  atoll status --json", nullptr,
     make_plain<StatusCommand>},
    {"doctor", "Say what this host offers and what to change; best as root",
     "  atoll doctor\n"
     "  atoll doctor --json",
     nullptr, make_plain<DoctorCommand>},
    {"selftest", "Attack this host's Atoll from inside (root)",
     "  atoll selftest\n"
     "  atoll selftest --list",
     add_selftest, make_selftest},
    {"key show-local", "Print the key of this host (root)",
     "  export ATOLL_KEY=$(atoll key show-local)", nullptr, make_plain<ShowKeyCommand>},
    {"key create", "Make a key and print it, this once",
     "  atoll key create --tenant acme --name ci", add_key_create, make_key_create},
    {"key ls", "List the keys in force", "  atoll key ls", nullptr, make_plain<ListKeysCommand>},
    {"key revoke", "End a key", "  atoll key revoke k3", add_key_revoke, make_key_revoke},
    {"completion", "Print what makes a shell complete commands, options and sandboxes",
     "  source <(atoll completion bash)\n"
     "  atoll completion zsh >\"${fpath[1]}/_atoll\"\n"
     "  atoll completion fish >~/.config/fish/completions/atoll.fish",
     add_completion, make_completion},
    {"version", "Print the version", "  atoll version", nullptr, make_plain<VersionCommand>},
};

}  // namespace

CommandGroup host_entries() { return {"This host", kEntries}; }

}  // namespace atl::cli
