// The commands about sandboxes, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_id(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
}

void add_sandbox_list(CLI::App& app, Typed& typed) {
  app.add_flag("-a,--all", typed.all, "Also those that failed or are being deleted");
  app.add_flag("-q,--quiet", typed.quiet, "Print ids only");
  app.add_option("--state", typed.state, "Only those in this state")->type_name("STATE");
  app.add_option("--metadata", typed.metadata, "Only those with this note; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY=VALUE");
}

void add_sandbox_remove(CLI::App& app, Typed& typed) {
  app.add_option("ids", typed.ids, "The sandboxes")->type_name("ID");
  app.add_flag("--all", typed.all, "Every sandbox of this key");
  app.add_flag("-y,--yes", typed.yes, "Do not ask");
}

void add_usage(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox (default: all, also those that are gone)")
      ->type_name("ID");
}

void add_ports(CLI::App& app, Typed& typed) {
  add_id(app, typed);
  app.add_option("--open", typed.port, "Print a private URL of this port")
      ->check(CLI::Range(1u, 65535u))
      ->type_name("PORT");
  app.add_option("--expires", typed.expires, "How long the URL is good: 1h")->type_name("TIME");
}

void add_verify(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "What `receipt show --json` printed; - is standard input")
      ->type_name("FILE");
  app.add_option("--public-key", typed.public_key, "The signer's key (default: this host's)")
      ->type_name("FILE|KEY");
}

Result<Command> make_sandbox_list(const Typed& typed, const CLI::App&) {
  ListCommand command;
  if (typed.all || !typed.state.empty()) command.what = ListCommand::What::kAll;
  if (typed.quiet) command.columns = ListCommand::Columns::kIds;
  command.state = typed.state;
  ATOLL_TRY(Pairs notes, pairs_of(typed.metadata));
  for (const auto& [key, value] : notes) command.metadata.push_back(key + ":" + value);
  return Command(std::move(command));
}

Result<Command> make_sandbox_remove(const Typed& typed, const CLI::App&) {
  if (typed.all != typed.ids.empty())
    return Error(Code::kInvalid, "rm needs the ids of sandboxes, or --all");
  RemoveCommand command;
  if (typed.all) command.what = RemoveCommand::What::kAll;
  if (typed.yes) command.confirm = RemoveCommand::Confirm::kYes;
  command.ids = typed.ids;
  return Command(std::move(command));
}

Result<Command> make_ports(const Typed& typed, const CLI::App&) {
  PortsCommand command{typed.id, typed.port, {}};
  ATOLL_TRY(command.expires, duration_if_given(typed.expires));
  return Command(std::move(command));
}

Result<Command> make_sandbox_show(const Typed& typed, const CLI::App&) {
  return Command(ShowCommand{typed.id});
}

Result<Command> make_usage(const Typed& typed, const CLI::App&) {
  return Command(UsageCommand{typed.id});
}

Result<Command> make_receipt(const Typed& typed, const CLI::App&) {
  return Command(ShowReceiptCommand{typed.id});
}

Result<Command> make_verify(const Typed& typed, const CLI::App&) {
  return Command(VerifyReceiptCommand{if_given(typed.file).value_or("-"), typed.public_key});
}

void add_egress_log(CLI::App& app, Typed& typed) {
  add_id(app, typed);
  app.add_flag("-f,--follow", typed.follow, "Go on with what is tried from now on");
}

void add_egress_explain(CLI::App& app, Typed& typed) {
  add_id(app, typed);
  app.add_option("destination", typed.to, "https://HOST/… or HOST:PORT")->required();
}

void add_egress_test(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "A policy, as docs/egress.md describes it")->required();
  app.add_option("destination", typed.to, "https://HOST/… or HOST:PORT")->required();
}

Result<Command> make_egress_log(const Typed& typed, const CLI::App&) {
  using What = EgressCommand::What;
  return Command(EgressCommand{typed.follow ? What::kFollow : What::kLog, typed.id, ""});
}

Result<Command> make_egress_explain(const Typed& typed, const CLI::App&) {
  return Command(EgressCommand{EgressCommand::What::kExplain, typed.id, typed.to});
}

Result<Command> make_egress_test(const Typed& typed, const CLI::App&) {
  return Command(EgressCommand{EgressCommand::What::kTest, typed.file, typed.to});
}

Result<Command> make_egress_learn(const Typed& typed, const CLI::App&) {
  return Command(EgressCommand{EgressCommand::What::kLearn, typed.id, ""});
}

constexpr CommandEntry kSandboxEntries[] = {
    {"ls", "List sandboxes",
     "  atoll ls\n"
     "  atoll ls --metadata team=a --json\n"
     "  atoll rm $(atoll ls -q --state failed)",
     add_sandbox_list, make_sandbox_list},
    {"show", "Show a sandbox", "  atoll show work --json", add_id, make_sandbox_show},
    {"rm", "Remove sandboxes",
     "  atoll rm work\n"
     "  atoll rm --all --yes",
     add_sandbox_remove, make_sandbox_remove},
    {"usage", "Show what was used, in a sandbox or in all",
     "  atoll usage\n"
     "  atoll usage work",
     add_usage, make_usage},
    {"ports", "List the ports that listen in a sandbox",
     "  atoll ports work\n"
     "  curl \"$(atoll ports work --open 8000)\"",
     add_ports, make_ports},
    {"receipt show", "Show the receipt of a sandbox; --json has the signature",
     "  atoll receipt show work --json >receipt.json", add_id, make_receipt},
    {"receipt verify", "Check who signed a receipt",
     "  atoll receipt verify receipt.json --public-key receipt.pub", add_verify, make_verify},
    {"egress log", "Show what a sandbox tried to reach", "  atoll egress log work --follow",
     add_egress_log, make_egress_log},
    {"egress explain", "Show which rule decides, and what would allow it",
     "  atoll egress explain work https://pypi.org/", add_egress_explain, make_egress_explain},
    {"egress learn", "Print the smallest policy for what a sandbox was denied",
     "  atoll egress learn work >policy.toml", add_id, make_egress_learn},
    {"egress test", "Try a policy without a sandbox",
     "  atoll egress test policy.toml https://pypi.org/", add_egress_test, make_egress_test},
};

}  // namespace

CommandGroup sandbox_entries() { return {"Sandboxes", kSandboxEntries}; }

}  // namespace atl::cli
