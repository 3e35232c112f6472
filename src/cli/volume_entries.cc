// The commands about volumes, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_volume_name(CLI::App& app, Typed& typed) {
  app.add_option("name", typed.id, "The volume")->required()->type_name("NAME");
}

void add_volume_create(CLI::App& app, Typed& typed) {
  add_volume_name(app, typed);
  app.add_option("--size", typed.disk, "What may be in it: 512M, 10G (default: 1G)")
      ->type_name("SIZE");
}

void add_volume_names(CLI::App& app, Typed& typed) {
  app.add_option("names", typed.ids, "The volumes")->required()->type_name("NAME");
}

Result<Command> make_volume_create(const Typed& typed, const CLI::App&) {
  constexpr uint64_t kDefaultBytes = 1ull << 30;
  ATOLL_TRY(auto bytes, size_if_given(typed.disk));
  return Command(
      VolumeCommand{VolumeCommand::What::kCreate, {typed.id}, bytes.value_or(kDefaultBytes)});
}

Result<Command> make_volume_list(const Typed&, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kList, {}});
}

Result<Command> make_volume_show(const Typed& typed, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kShow, {typed.id}});
}

Result<Command> make_volume_remove(const Typed& typed, const CLI::App&) {
  return Command(VolumeCommand{VolumeCommand::What::kRemove, typed.ids});
}

constexpr CommandEntry kVolumeEntries[] = {
    {"volume create", "Make files that outlive sandboxes",
     "  atoll volume create cache --size 2G\n"
     "  atoll run --volume cache:/srv/cache script.py",
     add_volume_create, make_volume_create},
    {"volume ls", "List volumes", "  atoll volume ls", nullptr, make_volume_list},
    {"volume show", "Show a volume, and which sandboxes have it", "  atoll volume show cache",
     add_volume_name, make_volume_show},
    {"volume rm", "Remove volumes with their files", "  atoll volume rm cache", add_volume_names,
     make_volume_remove},
};

}  // namespace

CommandGroup volume_entries() { return {"Volumes", kVolumeEntries}; }

}  // namespace atl::cli
