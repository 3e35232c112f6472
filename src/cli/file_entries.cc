// The commands about the files of a sandbox, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"
#include "cli/remote_path.h"

namespace atl::cli {
namespace {

void add_place(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox, or ID:PATH")->required()->type_name("ID");
  app.add_option("path", typed.path, "The path inside");
}

void add_copy(CLI::App& app, Typed& typed) {
  app.add_option("from", typed.from, "A local path, ID:PATH, or - for standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("to", typed.to, "A local path, ID:PATH, or - for standard output")
      ->required()
      ->type_name("FILE");
  app.add_flag("-r,--recursive", typed.recursive, "Copy a directory with all that is in it");
  app.add_option("-u,--user", typed.user, "Whose files they become inside")->type_name("USER");
}

void add_cat(CLI::App& app, Typed& typed) {
  add_place(app, typed);
  app.add_flag("--raw", typed.raw, "Let control sequences reach the terminal");
}

void add_list_files(CLI::App& app, Typed& typed) {
  add_place(app, typed);
  app.add_flag("-l,--long", typed.is_long, "With mode, owner, size and time");
  app.add_flag("-R,--recursive", typed.recursive, "With everything beneath");
}

void add_watch(CLI::App& app, Typed& typed) {
  add_place(app, typed);
  app.add_flag("-R,--recursive", typed.recursive, "With everything beneath");
}

Depth depth_of(const Typed& typed) { return typed.recursive ? Depth::kRecursive : Depth::kFlat; }

Result<Command> make_copy(const Typed& typed, const CLI::App&) {
  bool from_sandbox = split_remote_path(typed.from).has_value();
  if (from_sandbox == split_remote_path(typed.to).has_value())
    return Error(Code::kInvalid, "cp needs exactly one ID:PATH: cp LOCAL ID:PATH, or the reverse");
  return Command(CopyCommand{typed.from, typed.to, depth_of(typed), typed.user});
}

Result<Command> make_cat(const Typed& typed, const CLI::App&) {
  ATOLL_TRY(RemotePath place, remote_path_of(typed.id, typed.path));
  if (place.path.empty()) return Error(Code::kInvalid, "cat needs a path: cat ID PATH");
  auto mode = typed.raw ? OutputMode::kRaw : OutputMode::kSafe;
  return Command(CatCommand{std::move(place), mode});
}

Result<Command> make_list_files(const Typed& typed, const CLI::App&) {
  using Columns = ListFilesCommand::Columns;
  ATOLL_TRY(RemotePath place, remote_path_of(typed.id, typed.path));
  auto columns = typed.is_long ? Columns::kLong : Columns::kNames;
  return Command(ListFilesCommand{std::move(place), depth_of(typed), columns});
}

Result<Command> make_watch(const Typed& typed, const CLI::App&) {
  ATOLL_TRY(RemotePath place, remote_path_of(typed.id, typed.path));
  return Command(WatchCommand{std::move(place), depth_of(typed)});
}

constexpr CommandEntry kFileEntries[] = {
    {"cp", "Copy files into and out of a sandbox",
     "  atoll cp data.csv work:/home/user/\n"
     "  atoll cp work:/tmp/outputs/plot.png .\n"
     "  atoll cp -r project work:/home/user/project\n"
     "  tar c . | gzip | atoll cp - work:/tmp/all.tar.gz",
     add_copy, make_copy},
    {"cat", "Print a file of a sandbox", "  atoll cat work /etc/os-release", add_cat, make_cat},
    {"ls-files", "List a directory of a sandbox",
     "  atoll ls-files work\n"
     "  atoll ls-files -l -R work /tmp/outputs",
     add_list_files, make_list_files},
    {"watch", "Print what changes in a directory of a sandbox, until it is interrupted",
     "  atoll watch work /home/user\n"
     "  atoll watch -R --json work /tmp",
     add_watch, make_watch},
};

}  // namespace

CommandGroup file_entries() { return {"Files", kFileEntries}; }

}  // namespace atl::cli
