// The table of commands: the one place that says which there are. The parser, the help, the guess
// at what a misspelt word meant and the completions of shells are all made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/server.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace atl::cli {

// What CLI11 writes into; turned into a command when the whole line is known to be well-formed.
struct Typed {
  std::string state_directory;
  ServerChoice server;
  bool json = false;

  bool detach = false, allow_remote = false, no_warm_pool = false, anew = false;
  bool adopt_orphans = false;
  bool keep = false, without_images = false, daemon_only = false, warden_only = false;
  std::optional<int> resumed_for, kvm_trial;
  std::optional<uint64_t> kernel_memory_growth;
  std::string listen = kDefaultListen, gvisor_platform, pool_size;
  std::string directory, public_key, tenant, key_name, shell;
  std::string e2b_internet, upstream, upstream_secret, sealed_share;  // of a tenant
  TlsOptions tls;
  bool e2b_key = false;
  bool list = false;
  std::vector<std::string> only;
  unsigned count = 20;

  std::string template_name, sandbox_name, isolation;
  bool reuse = false;
  std::string cpu_time, output_limit, on_output_limit, timeout;
  std::string memory, disk, disk_rate, on_oom, ttl, idle_ttl, on_ttl, files_only_after;
  bool auto_resume = false, files_only_under_pressure = false, persistent = false;
  std::string label, snapshot;
  bool adopt = false, sealed = false;
  std::optional<double> cpu;
  std::optional<uint32_t> pids, open_files;
  std::vector<std::string> require, allow, secrets, hosts, paths, env, metadata, files, volumes;
  std::string header, value_file;
  std::string code, file, input, output_directory, user, cwd, attach;
  bool raw = false, verbose = false, interactive = false, terminal = false;
  std::string id, exec, state;
  std::vector<std::string> ids, command;
  bool all = false, yes = false, quiet = false, follow = false;
  std::string from, to, path, expires;
  bool recursive = false, is_long = false;
  std::optional<uint16_t> port;
};

struct CommandEntry {
  const char* name;  // "template add" is a word of a group and a word of its own
  const char* summary;
  const char* examples;                              // one a line
  void (*add_options)(CLI::App& app, Typed& typed);  // null: none
  Result<Command> (*make)(const Typed& typed, const CLI::App& app);
};

struct CommandGroup {
  const char* title;
  std::span<const CommandEntry> entries;
};

CommandGroup sandbox_entries();
CommandGroup state_entries();
CommandGroup program_entries();
CommandGroup file_entries();
CommandGroup template_entries();
CommandGroup host_entries();
CommandGroup secret_entries();
CommandGroup volume_entries();
std::vector<CommandGroup> command_table();

// A parser of the whole table that writes into `typed`, which must outlive it.
std::unique_ptr<CLI::App> make_parser(Typed& typed);

// The command of the table that looks most like `word`; empty if none does.
std::string nearest_command(const std::string& word);

// An option that may be repeated.
CLI::Option* add_words(CLI::App& app, const char* name, std::vector<std::string>& into,
                       const char* description);

// For the files that make commands out of what was typed.
std::optional<std::string> if_given(const std::string& text);
Result<std::optional<std::chrono::milliseconds>> duration_if_given(const std::string& text);
Result<std::optional<uint64_t>> size_if_given(const std::string& text);
// NAME=VALUE words.
Result<Pairs> pairs_of(const std::vector<std::string>& words);

}  // namespace atl::cli
