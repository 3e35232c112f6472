// The commands about the state of sandboxes, as they are typed.
#include <CLI/CLI.hpp>

#include "cli/command_table.h"

namespace atl::cli {
namespace {

void add_ids(CLI::App& app, Typed& typed) {
  app.add_option("ids", typed.ids, "The sandboxes")->required()->type_name("ID");
}

void add_cut(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("--label", typed.label, "What it is called in lists")->type_name("TEXT");
  app.add_flag("--sealed", typed.sealed, "Seal it too, as `atoll snapshot seal` does");
  app.add_option("--metadata", typed.metadata, "A note; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY=VALUE");
}

void add_sandbox_filter(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "Only those of this sandbox")->type_name("ID");
}

void add_snapshot(CLI::App& app, Typed& typed) {
  app.add_option("snapshot", typed.id, "The snapshot")->required()->type_name("SNAPSHOT");
}

void add_removal(CLI::App& app, Typed& typed) {
  app.add_option("snapshots", typed.ids, "The snapshots")->required()->type_name("SNAPSHOT");
  app.add_flag("--adopt", typed.adopt, "Leave its children to its parent");
}

void add_snapshot_export(CLI::App& app, Typed& typed) {
  add_snapshot(app, typed);
  app.add_option("-o,--output", typed.file, "Where to (default: SNAPSHOT.snapshot; - is stdout)")
      ->type_name("FILE");
}

void add_snapshot_import(CLI::App& app, Typed& typed) {
  app.add_option("file", typed.file, "What `atoll snapshot export` wrote; - is standard input")
      ->required()
      ->type_name("FILE");
}

void add_fork(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("-n,--count", typed.count, "How many (default: 1)")
      ->check(CLI::Range(1u, 100u))
      ->type_name("N");
}

Result<Command> make_pause(const Typed& typed, const CLI::App&) {
  return Command(PauseCommand{PauseCommand::What::kPause, typed.ids});
}

Result<Command> make_resume(const Typed& typed, const CLI::App&) {
  return Command(PauseCommand{PauseCommand::What::kResume, typed.ids});
}

SnapshotCommand snapshot_command(SnapshotCommand::What what, const Typed& typed) {
  SnapshotCommand command;
  command.what = what;
  command.ids = typed.ids;
  if (!typed.id.empty()) command.ids.push_back(typed.id);
  command.label = typed.label;
  if (typed.sealed) command.stage = SnapshotCommand::Stage::kSealed;
  command.file = typed.file;
  if (typed.adopt) command.children = SnapshotCommand::Children::kAdopt;
  return command;
}

template <SnapshotCommand::What what>
Result<Command> make_snapshot(const Typed& typed, const CLI::App&) {
  SnapshotCommand command = snapshot_command(what, typed);
  ATOLL_TRY(command.metadata, pairs_of(typed.metadata));
  return Command(std::move(command));
}

void add_rollback(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("snapshot", typed.snapshot, "What it goes back to")
      ->required()
      ->type_name("SNAPSHOT");
}

Result<Command> make_rollback(const Typed& typed, const CLI::App&) {
  return Command(RollbackCommand{typed.id, typed.snapshot});
}

void add_diff(CLI::App& app, Typed& typed) {
  app.add_option("from", typed.from, "A snapshot, or a sandbox: what it was last kept as")
      ->required()
      ->type_name("SNAPSHOT|ID");
  app.add_option("to", typed.to, "A snapshot or a sandbox (default: the sandbox)")
      ->type_name("SNAPSHOT|ID");
  app.add_option("--path", typed.path, "Only what is beneath it")->type_name("PATH");
  app.add_option("--text", typed.file, "The lines of this file instead")->type_name("PATH");
}

Result<Command> make_diff(const Typed& typed, const CLI::App&) {
  return Command(DiffCommand{typed.from, typed.to, typed.path, typed.file});
}

void add_replay(CLI::App& app, Typed& typed) {
  app.add_option("id", typed.id, "The sandbox")->required()->type_name("ID");
  app.add_option("snapshot", typed.snapshot, "What it begins with")
      ->required()
      ->type_name("SNAPSHOT");
  app.add_option("runs", typed.command, "Execs, and runs of contexts (default: all since then)")
      ->type_name("EXEC|CONTEXT/RUN");
}

Result<Command> make_replay(const Typed& typed, const CLI::App&) {
  return Command(ReplayCommand{typed.id, typed.snapshot, typed.command});
}

Result<Command> make_fork(const Typed& typed, const CLI::App& app) {
  return Command(ForkCommand{typed.id, app.count("--count") > 0 ? typed.count : 1u});
}

using What = SnapshotCommand::What;

constexpr CommandEntry kStateEntries[] = {
    {"pause", "Stop all that runs in sandboxes, in memory", "  atoll pause work", add_ids,
     make_pause},
    {"resume", "Let paused sandboxes go on", "  atoll resume work", add_ids, make_resume},
    {"fork", "Make sandboxes with the files of one that lives",
     "  atoll fork work\n"
     "  atoll fork work --count 10 --json",
     add_fork, make_fork},
    {"rollback", "Put the files of a sandbox back to a snapshot",
     "  atoll rollback work SNAPSHOT    # prints the snapshot that undoes it", add_rollback,
     make_rollback},
    {"diff", "Show what changed between snapshots, or since one",
     "  atoll diff work                  # since it was last kept\n"
     "  atoll diff SNAPSHOT work\n"
     "  atoll diff SNAPSHOT SNAPSHOT --text /home/user/main.py",
     add_diff, make_diff},
    {"replay", "Run again what was run since a snapshot, and compare",
     "  atoll replay work SNAPSHOT         # exits with 1 if something is different\n"
     "  atoll replay work SNAPSHOT e3 e4",
     add_replay, make_replay},
    {"snapshot create", "Keep the files of a sandbox as they are now",
     "  atoll snapshot create work --label before-upgrade\n"
     "  atoll snapshot create work --sealed   # as signed parts too, which can leave this host",
     add_cut, make_snapshot<What::kCreate>},
    {"snapshot ls", "List snapshots", "  atoll snapshot ls", add_sandbox_filter,
     make_snapshot<What::kList>},
    {"snapshot tree", "Show which snapshot comes from which", "  atoll snapshot tree",
     add_sandbox_filter, make_snapshot<What::kTree>},
    {"snapshot show", "Show a snapshot", "  atoll snapshot show SNAPSHOT", add_snapshot,
     make_snapshot<What::kShow>},
    {"snapshot seal", "Pack a snapshot into signed parts that can leave this host",
     "  atoll snapshot seal SNAPSHOT", add_snapshot, make_snapshot<What::kSeal>},
    {"snapshot export", "Write a snapshot as one file; seals it if it is not",
     "  atoll snapshot export SNAPSHOT -o work.snapshot", add_snapshot_export,
     make_snapshot<What::kExport>},
    {"snapshot import", "Make a snapshot of such a file, of this host or one that it trusts",
     "  atoll snapshot import work.snapshot", add_snapshot_import, make_snapshot<What::kImport>},
    {"snapshot rm", "Remove snapshots", "  atoll snapshot rm SNAPSHOT --adopt", add_removal,
     make_snapshot<What::kRemove>},
};

}  // namespace

CommandGroup state_entries() { return {"State", kStateEntries}; }

}  // namespace atl::cli
