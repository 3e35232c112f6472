// The commands about secrets, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_secret_name(CLI::App& app, Typed& typed) {
  app.add_option("name", typed.id, "The secret; also the variable that programs find it by")
      ->required()
      ->type_name("NAME");
}

void add_set(CLI::App& app, Typed& typed) {
  add_secret_name(app, typed);
  add_words(app, "--host", typed.hosts, "A host that it may be sent to; may be repeated")
      ->type_name("HOST");
  add_words(app, "--path", typed.paths, "Only with these paths: /v1/**; may be repeated")
      ->type_name("PATH");
  app.add_option("--header", typed.header, "Only in this field: 'Authorization: Bearer {}'")
      ->type_name("FORM");
  app.add_option("--value-file", typed.value_file,
                 "A file with the value (default: standard input, or asked for)")
      ->type_name("FILE");
}

Result<Command> make_set(const Typed& typed, const CLI::App&) {
  if (typed.hosts.empty()) return Error(Code::kInvalid, "secret set needs --host");
  return Command(SetSecretCommand{.name = typed.id,
                                  .hosts = typed.hosts,
                                  .paths = typed.paths,
                                  .header = typed.header,
                                  .value_file = typed.value_file});
}

Result<Command> make_secret_list(const Typed&, const CLI::App&) {
  return Command(ListSecretsCommand{});
}

Result<Command> make_secret_remove(const Typed& typed, const CLI::App&) {
  return Command(RemoveSecretCommand{typed.id});
}

constexpr CommandEntry kSecretEntries[] = {
    {"secret set", "Keep a value for programs that never see it",
     "  atoll secret set API_KEY --host api.example.com --header 'Authorization: Bearer {}' <key\n"
     "  atoll run --allow api.example.com --secret API_KEY script.py",
     add_set, make_set},
    {"secret ls", "List secrets, without their values", "  atoll secret ls", nullptr,
     make_secret_list},
    {"secret rm", "Forget a secret", "  atoll secret rm API_KEY", add_secret_name,
     make_secret_remove},
};

}  // namespace

CommandGroup secret_entries() { return {"Secrets", kSecretEntries}; }

}  // namespace atl::cli
