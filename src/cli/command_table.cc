#include "cli/command_table.h"

#include <algorithm>
#include <numeric>

#include <CLI/CLI.hpp>

#include "cli/duration.h"
#include "cli/size.h"

namespace atl::cli {
namespace {

struct NamedGroup {
  const char* name;
  const char* summary;
};
constexpr NamedGroup kNamedGroups[] = {{"template", "Templates"},
                                       {"key", "API keys"},
                                       {"tenant", "What tenants may do"},
                                       {"receipt", "What was enforced"},
                                       {"egress", "What is reached"},
                                       {"snapshot", "Snapshots"},
                                       {"volume", "Files that outlive sandboxes"},
                                       {"secret", "Values that sandboxes use unseen"}};

void add_global_options(CLI::App& app, Typed& typed) {
  app.add_option("--state-dir", typed.state_directory,
                 "Keep state in DIR and sockets in DIR/run (default: /var/lib/atoll, /run/atoll)")
      ->type_name("DIR");
  app.add_option("--url", typed.server.url,
                 "The server, as http://HOST:PORT (default: this host's)")
      ->envname("ATOLL_URL")
      ->type_name("URL");
  app.add_option("--key", typed.server.key, "The API key (default: this host's local key)")
      ->envname("ATOLL_KEY")
      ->type_name("KEY");
  app.add_flag("--json", typed.json, "Print JSON");
}

// The parent of a command of two words, made when its first command comes.
CLI::App& parent_of(CLI::App& app, const std::string& group, const char* title) {
  auto known = app.get_subcommands([&](CLI::App* sub) { return sub->get_name() == group; });
  if (!known.empty()) return *known.front();
  const auto* found = std::find_if(std::begin(kNamedGroups), std::end(kNamedGroups),
                                   [&](const NamedGroup& named) { return group == named.name; });
  ATOLL_CHECK(found != std::end(kNamedGroups));
  CLI::App* made = app.add_subcommand(group, found->summary);
  made->fallthrough()->require_subcommand(1)->group(title);
  return *made;
}

void add_entry(CLI::App& app, const char* title, const CommandEntry& entry, Typed& typed) {
  std::string name = entry.name;
  size_t space = name.find(' ');
  CLI::App& parent = space == name.npos ? app : parent_of(app, name.substr(0, space), title);
  CLI::App* command =
      parent.add_subcommand(space == name.npos ? name : name.substr(space + 1), entry.summary);
  command->fallthrough();
  if (space == name.npos) command->group(title);
  command->footer("Examples:\n" + std::string(entry.examples));
  if (entry.add_options != nullptr) entry.add_options(*command, typed);
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<CommandGroup> command_table() {
  return {program_entries(), sandbox_entries(),  state_entries(),  volume_entries(),
          file_entries(),    template_entries(), secret_entries(), host_entries()};
}

std::unique_ptr<CLI::App> make_parser(Typed& typed) {
  auto app = std::make_unique<CLI::App>("Atoll gives every agent its own computer.", "atoll");
  app->require_subcommand(1);
  app->footer("atoll help COMMAND shows its options and examples.");
  add_global_options(*app, typed);
  for (const CommandGroup& group : command_table())
    for (const CommandEntry& entry : group.entries) add_entry(*app, group.title, entry, typed);
  return app;
}

std::string nearest_command(const std::string& word) {
  std::vector<std::string> names;
  for (const CommandGroup& group : command_table())
    for (const CommandEntry& entry : group.entries) {
      std::string name = entry.name;
      names.push_back(name.substr(0, name.find(' ')));
      names.push_back(std::move(name));
    }
  std::string best;
  size_t least = std::max<size_t>(word.size() / 2, 1) + 1;
  for (const std::string& name : names) {
    size_t distance = edit_distance(word, name);
    if (distance < least) best = name;
    least = std::min(least, distance);
  }
  return best;
}

CLI::Option* add_words(CLI::App& app, const char* name, std::vector<std::string>& into,
                       const char* description) {
  return app.add_option(name, into, description)
      ->expected(1)
      ->allow_extra_args(false)  // or it would take the words behind it too
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::optional<std::string> if_given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<std::optional<std::chrono::milliseconds>> duration_if_given(const std::string& text) {
  if (text.empty()) return std::optional<std::chrono::milliseconds>();
  ATOLL_TRY(std::chrono::milliseconds duration, parse_duration(text));
  return std::optional(duration);
}

Result<std::optional<uint64_t>> size_if_given(const std::string& text) {
  if (text.empty()) return std::optional<uint64_t>();
  ATOLL_TRY(uint64_t size, parse_size(text));
  return std::optional(size);
}

Result<Pairs> pairs_of(const std::vector<std::string>& words) {
  Pairs pairs;
  for (const std::string& word : words) {
    size_t equals = word.find('=');
    if (equals == word.npos || equals == 0)
      return Error(Code::kInvalid, "\"" + word + "\" is not NAME=VALUE");
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

}  // namespace atl::cli
