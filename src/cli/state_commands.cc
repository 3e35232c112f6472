#include "cli/state_commands.h"

#include <stdio.h>

#include "cli/api.h"
#include "cli/exit_code.h"
#include "cli/readable.h"
#include "cli/snapshot_packs.h"
#include "cli/snapshot_tree.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

Result<int> create_snapshot(const CommandLine& line, Api& api, const SnapshotCommand& command) {
  ATOLL_TRY(std::string target, sandbox_target(command.ids.at(0)));
  json::object body{{"label", command.label}};
  json::object metadata;
  for (const auto& [name, value] : command.metadata) metadata[name] = value;
  if (!metadata.empty()) body["metadata"] = std::move(metadata);
  Api::Call call{.method = http::Method::kPost, .target = target + "/snapshots"};
  if (command.stage == SnapshotCommand::Stage::kSealed) {
    body["stage"] = "sealed";
    call.timeout += kMostSealTime;
  }
  call.body = std::move(body);
  ATOLL_TRY(json::object made, api.call(call));
  if (line.format == Format::kJson)
    print_json(made);
  else
    printf("%s\n", readable_field(made, "id").c_str());
  return 0;
}

Result<json::array> list_snapshots(Api& api, const SnapshotCommand& command) {
  std::string target = "/v1/snapshots";
  if (!command.ids.empty()) {
    // A name may stand for the id here too.
    ATOLL_TRY(json::object sandbox, api.show_sandbox(command.ids.front()));
    target += "?sandbox=" + percent_encode(text_field(sandbox, "id"));
  }
  return api.list(target, "snapshots");
}

void print_list(const json::array& rows) {
  printf("%-22s %-22s %-20s %11s %s\n", "ID", "SANDBOX", "LABEL", "BYTES", "CREATED");
  for (const json::value& row : rows) {
    if (!row.is_object()) continue;
    const json::object& snapshot = row.as_object();
    printf("%-22s %-22s %-20s %11s %s\n", readable_field(snapshot, "id").c_str(),
           readable_field(snapshot, "sandbox").c_str(), readable_field(snapshot, "label").c_str(),
           readable_field(snapshot, "bytes").c_str(),
           readable_field(snapshot, "created_at").c_str());
  }
}

Result<int> show_snapshot(const CommandLine& line, Api& api, const std::string& id) {
  ATOLL_TRY(std::string target, snapshot_target(id));
  ATOLL_TRY(json::object snapshot, api.call({.target = target}));
  if (line.format == Format::kJson) {
    print_json(snapshot);
    return 0;
  }
  for (const auto& field : snapshot)
    printf("%-16s %s\n", escape_line(std::string(field.key())).c_str(),
           readable(field.value()).c_str());
  return 0;
}

Result<int> remove_snapshots(const CommandLine& line, Api& api, const SnapshotCommand& command) {
  bool adopt = command.children == SnapshotCommand::Children::kAdopt;
  json::array removed;
  for (const std::string& id : command.ids) {
    ATOLL_TRY(std::string target, snapshot_target(id));
    if (adopt) target += "?children=adopt";
    ATOLL_TRY([[maybe_unused]] json::object none,
              api.call({.method = http::Method::kDelete, .target = target}));
    removed.emplace_back(id);
  }
  if (line.format == Format::kJson) print_json(json::object{{"removed", std::move(removed)}});
  return 0;
}

// Ids of snapshots and of sandboxes begin with different letters.
bool is_snapshot(const std::string& word) {
  constexpr size_t kIdLength = 20;
  return word.size() == kIdLength && word.front() == 'n';
}

Result<std::string> diff_target(const DiffCommand& diff) {
  std::string query;
  std::string target;
  if (!is_snapshot(diff.from)) {
    if (!diff.to.empty())
      return Error(Code::kInvalid, "what comes second is compared with a snapshot");
    ATOLL_TRY(target, sandbox_target(diff.from));
  } else if (is_snapshot(diff.to)) {
    ATOLL_TRY(target, snapshot_target(diff.from));
    query = "&to=" + diff.to;
  } else {
    if (diff.to.empty()) return Error(Code::kInvalid, "name a sandbox or another snapshot too");
    ATOLL_TRY(target, sandbox_target(diff.to));
    query = "&from=" + diff.from;
  }
  if (!diff.path.empty()) query += "&path=" + percent_encode(diff.path);
  if (!diff.text.empty()) query += "&text=" + percent_encode(diff.text);
  target += "/diff";
  return query.empty() ? target : target + "?" + query.substr(1);
}

// "+" what was added, "-" removed, "~" changed, with the sizes.
void print_changes(const json::object& found) {
  const json::value* changes = found.if_contains("changes");
  if (changes == nullptr || !changes->is_array()) return;
  for (const json::value& row : changes->get_array()) {
    if (!row.is_object()) continue;
    const json::object& change = row.as_object();
    std::string what = text_field(change, "what");
    const char* mark = what == "added" ? "+" : what == "removed" ? "-" : "~";
    std::string before = readable_field(change, "size_before");
    std::string after = readable_field(change, "size");
    std::string sizes = before + " -> " + after;
    if (what != "changed") sizes = what == "added" ? after : before;
    printf("%s %-22s %s\n", mark, sizes.c_str(), readable_field(change, "path").c_str());
  }
  const json::value* more = found.if_contains("truncated");
  if (more != nullptr && more->is_bool() && more->get_bool())
    fprintf(stderr, "atoll: there are more changes\n");
}

const json::array* array_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? value->if_array() : nullptr;
}

// Text, or base 64 of what is none.
std::string bytes_field(const json::object& object, const std::string& name) {
  bool is_text = object.contains(name);
  return readable_field(object, (is_text ? name : name + "_base64").c_str());
}

void print_difference(const json::object& difference) {
  std::string where = text_field(difference, "in");
  if (const json::value* change = difference.if_contains("change"); change && change->is_object()) {
    printf("files differ: %s %s\n", readable_field(change->get_object(), "what").c_str(),
           bytes_field(change->get_object(), "path").c_str());
    return;
  }
  printf("%s differs in %s", readable_field(difference, "run").c_str(), where.c_str());
  if (difference.contains("offset"))
    printf(" at byte %s", readable_field(difference, "offset").c_str());
  printf("\n  recorded: %s\n  replayed: %s\n", bytes_field(difference, "recorded").c_str(),
         bytes_field(difference, "replayed").c_str());
}

// That it goes on is no failure; that it does so without what it had is said all the same.
void tell_lost(const std::string& id, const json::object& sandbox) {
  const json::value* lost = sandbox.if_contains("not_carried");
  if (lost == nullptr || !lost->is_array()) return;
  for (const json::value& one : lost->as_array())
    if (one.is_object())
      fprintf(stderr, "atoll: %s: %s %s is lost: %s\n", escape_line(id).c_str(),
              readable_field(one.as_object(), "what").c_str(),
              readable_field(one.as_object(), "id").c_str(),
              readable_field(one.as_object(), "why").c_str());
}

}  // namespace

Result<int> run_command(const CommandLine& line, const PauseCommand& pause) {
  ATOLL_TRY(Api api, connect(line));
  const char* verb = pause.what == PauseCommand::What::kPause ? "/pause" : "/resume";
  json::array done;
  int failed = 0;
  for (const std::string& id : pause.ids) {
    ATOLL_TRY(std::string target, sandbox_target(id));
    auto sandbox = api.call({.method = http::Method::kPost, .target = target + verb});
    if (sandbox) {
      tell_lost(id, *sandbox);
      done.emplace_back(std::move(*sandbox));
      continue;
    }
    ++failed;
    fprintf(stderr, "atoll: %s: %s\n", escape_line(id).c_str(),
            escape_controls(sandbox.error().message()).c_str());
  }
  if (line.format == Format::kJson) print_json(json::object{{"sandboxes", std::move(done)}});
  return failed == 0 ? 0 : kExitPlatform;
}

Result<int> run_command(const CommandLine& line, const SnapshotCommand& snapshot) {
  using What = SnapshotCommand::What;
  ATOLL_TRY(Api api, connect(line));
  if (snapshot.what == What::kCreate) return create_snapshot(line, api, snapshot);
  if (snapshot.what == What::kShow) return show_snapshot(line, api, snapshot.ids.at(0));
  if (snapshot.what == What::kRemove) return remove_snapshots(line, api, snapshot);
  if (snapshot.what == What::kSeal || snapshot.what == What::kExport ||
      snapshot.what == What::kImport)
    return run_pack_command(line, api, snapshot);
  ATOLL_TRY(json::array rows, list_snapshots(api, snapshot));
  if (line.format == Format::kJson)
    print_json(json::object{{"snapshots", std::move(rows)}});
  else if (snapshot.what == What::kTree)
    printf("%s", snapshot_tree(rows).c_str());
  else
    print_list(rows);
  return 0;
}

Result<int> run_command(const CommandLine& line, const RollbackCommand& rollback) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(rollback.id));
  json::object body{{"snapshot", rollback.snapshot}};
  ATOLL_TRY(json::object done, api.call({.method = http::Method::kPost,
                                         .target = target + "/rollback",
                                         .body = std::move(body)}));
  if (line.format == Format::kJson)
    print_json(done);
  else
    printf("%s\n", readable_field(done, "undo").c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const DiffCommand& diff) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, diff_target(diff));
  ATOLL_TRY(json::object found, api.call({.target = target}));
  if (line.format == Format::kJson) {
    print_json(found);
  } else if (!diff.text.empty()) {
    printf("%s", escape_controls(text_field(found, "diff")).c_str());
  } else {
    print_changes(found);
  }
  return 0;
}

Result<int> run_command(const CommandLine& line, const ReplayCommand& replay) {
  constexpr std::chrono::hours kMostTime{1};
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(replay.id));
  json::object body{{"from", replay.snapshot}};
  if (!replay.runs.empty()) body["runs"] = json::array(replay.runs.begin(), replay.runs.end());
  Api::Call call{
      .method = http::Method::kPost, .target = target + "/replay", .body = std::move(body)};
  call.timeout += kMostTime;
  ATOLL_TRY(json::object done, api.call(call));
  const json::value* found = done.if_contains("difference");
  const json::object* difference = found != nullptr ? found->if_object() : nullptr;
  if (line.format == Format::kJson) {
    print_json(done);
    return difference != nullptr ? 1 : 0;
  }
  if (const json::array* left = array_of(done, "not_replayed"))
    for (const json::value& row : *left)
      if (row.is_object())
        fprintf(stderr, "atoll: %s was not run again: %s\n",
                readable_field(row.as_object(), "run").c_str(),
                readable_field(row.as_object(), "why").c_str());
  const json::array* runs = array_of(done, "runs");
  if (difference != nullptr)
    print_difference(*difference);
  else
    printf("%zu runs are as they were\n", runs != nullptr ? runs->size() : 0);
  return difference != nullptr ? 1 : 0;
}

Result<int> run_command(const CommandLine& line, const ForkCommand& fork) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(fork.id));
  json::object body{{"count", fork.count}};
  ATOLL_TRY(json::object forked, api.call({.method = http::Method::kPost,
                                           .target = target + "/fork",
                                           .body = std::move(body)}));
  if (line.format == Format::kJson) {
    print_json(forked);
    return 0;
  }
  const json::value* made = forked.if_contains("sandboxes");
  if (made == nullptr || !made->is_array()) return kExitPlatform;
  for (const json::value& row : made->get_array())
    if (row.is_object()) printf("%s\n", readable_field(row.as_object(), "id").c_str());
  return 0;
}

}  // namespace atl::cli
