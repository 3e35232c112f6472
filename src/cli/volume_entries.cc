// The commands about volumes, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_name(CLI::App& app, Typed& typed) {
  app.add_option("name", typed.id, "The volume")->required()->type_name("NAME");
}

void add_create(CLI::App& app, Typed& typed) {
  add_name(app, typed);
  app.add_option("--size", typed.disk, "What may be in it: 512M, 10G (default: 1G)")
      ->type_name("SIZE");
}

void add_names(CLI::App& app, Typed& typed) {
  app.add_option("names", typed.ids, "The volumes")->required()->type_name("NAME");
}

Result<Command> make_create(const Typed& typed, const CLI::App&) {
  constexpr uint64_t kDefaultBytes = 1ull << 30;
  ATOLL_TRY(auto bytes, size_if_given(typed.disk));
  return Command(
      VolumeCommand{VolumeCommand::What::kCreate, {typed.id}, bytes.value_or(kDefaultBytes)});
}

Result<Command> make_list(const Typed&, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kList, {}});
}

Result<Command> make_show(const Typed& typed, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kShow, {typed.id}});
}

Result<Command> make_remove(const Typed& typed, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kRemove, typed.ids});
}

constexpr CommandEntry kEntries[] = {
    {"volume create", "Make files that outlive sandboxes",
     "  atoll volume create cache --size 2G\n"
     "  atoll run --volume cache:/srv/cache script.py",
     add_create, make_create},
    {"volume ls", "List volumes", "  atoll volume ls", nullptr, make_list},
    {"volume show", "Show a volume, and which sandboxes have it", "  atoll volume show cache",
     add_name, make_show},
    {"volume rm", "Remove volumes with their files", "  atoll volume rm cache", add_names,
     make_remove},
};

}  // namespace

CommandGroup volume_entries() { return {"Volumes", kEntries}; }

}  // namespace atl::cli
