#include "cli/sandbox_commands.h"

#include <stdio.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "cli/api.h"
#include "cli/exit_code.h"
#include "cli/readable.h"
#include "cli/template_progress.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

bool is_usable(const json::value& row) {
  if (!row.is_object()) return false;
  std::string state = text_field(row.as_object(), "state");
  return state != "failed" && state != "deleting";
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string shown_state(const std::string& state) {
  std::string text = padded(state, 10);
  if (state == "running") return coloured(Colour::kGreen, text);
  return coloured(state == "failed" ? Colour::kRed : Colour::kYellow, text);
}

void print_row(const json::value& row) {
  if (!row.is_object()) return;
  const json::object& sandbox = row.as_object();
  printf("%-22s %-16s %s %-16s %s\n", readable_field(sandbox, "id").c_str(),
         readable_field(sandbox, "name").c_str(),
         shown_state(readable_field(sandbox, "state")).c_str(),
         readable_field(sandbox, "template").c_str(),
         readable_field(sandbox, "created_at").c_str());
}

Result<json::array> list_sandboxes(Api& api, const ListCommand& list) {
  std::string target = "/v1/sandboxes";
  std::string query;
  if (!list.state.empty()) query += "&state=" + percent_encode(list.state);
  for (const std::string& note : list.metadata) query += "&metadata=" + percent_encode(note, ":");
  if (!query.empty()) target += "?" + query.substr(1);
  ATOLL_TRY(json::array rows, api.list(target, "sandboxes"));
  if (list.what == ListCommand::What::kAll) return rows;
  json::array usable;
  for (json::value& row : rows)
    if (is_usable(row)) usable.push_back(std::move(row));
  return usable;
}

// Asks a person, never a script.
Result<bool> may_remove(size_t count) {
  if (isatty(STDIN_FILENO) != 1)
    return Error(Code::kInvalid, "rm --all asks before it removes\n  remedy: add --yes");
  fprintf(stderr, "remove %zu sandboxes? [y/N] ", count);
  std::array<char, 16> answer{};
  if (fgets(answer.data(), answer.size(), stdin) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

Result<std::vector<std::string>> ids_to_remove(Api& api, const RemoveCommand& remove) {
  if (remove.what == RemoveCommand::What::kNamed) return remove.ids;
  ATOLL_TRY(json::array rows, api.list("/v1/sandboxes", "sandboxes"));
  std::vector<std::string> ids;
  for (const json::value& row : rows)
    if (row.is_object()) ids.push_back(text_field(row.as_object(), "id"));
  if (remove.confirm == RemoveCommand::Confirm::kYes || ids.empty()) return ids;
  ATOLL_TRY(bool agreed, may_remove(ids.size()));
  return agreed ? ids : std::vector<std::string>();
}

constexpr std::array kUsageFields = {"wall_ms", "user_ms", "system_ms", "read_bytes",
                                     "written_bytes"};

const json::object* usage_of(const json::value& row) {
  const json::value* usage = row.is_object() ? row.as_object().if_contains("usage") : nullptr;
  return usage != nullptr && usage->is_object() ? &usage->get_object() : nullptr;
}

double number(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

// Sums of what the execs used, and the highest peak of memory.
json::object total_usage(const json::array& execs) {
  json::object total = {{"execs", execs.size()}};
  double peak = 0;
  for (const char* field : kUsageFields) {
    double sum = 0;
    for (const json::value& row : execs)
      if (const json::object* usage = usage_of(row)) sum += number(*usage, field);
    total[field] = sum;
  }
  for (const json::value& row : execs)
    if (const json::object* usage = usage_of(row))
      peak = std::max(peak, number(*usage, "peak_memory_bytes"));
  total["peak_memory_bytes"] = peak;
  return total;
}

void print_usage_row(const std::string& id, const std::string& verdict, const json::object& usage) {
  auto size = [&](const char* name) {
    return readable_size(static_cast<uint64_t>(number(usage, name)));
  };
  printf("%-8s %-14s %10.1f %10.1f %10.1f %11s %11s %11s\n", id.c_str(), verdict.c_str(),
         number(usage, "wall_ms"), number(usage, "user_ms"), number(usage, "system_ms"),
         size("peak_memory_bytes").c_str(), size("read_bytes").c_str(),
         size("written_bytes").c_str());
}

Result<int> show_all_usage(const CommandLine& line, Api& api) {
  ATOLL_TRY(json::object used, api.call({.target = "/v1/usage"}));
  if (line.format == Format::kJson) {
    print_json(used);
    return 0;
  }
  for (const char* name : {"since", "sandboxes", "sandboxes_living", "execs", "execs_running",
                           "cpu_ms", "wall_ms", "output_bytes", "read_bytes", "written_bytes"})
    printf("%-18s %s\n", name, readable_field(used, name).c_str());
  return 0;
}

}  // namespace

std::string end_text(const json::object& sandbox) {
  uint64_t ttl = number_field(sandbox, "ttl_ms");
  uint64_t idle_ttl = number_field(sandbox, "idle_ttl_ms");
  std::string when;
  if (idle_ttl > 0) when = readable_duration(idle_ttl) + " after it was last used";
  if (ttl > 0 && (idle_ttl == 0 || ttl > idle_ttl))
    when += (when.empty() ? "" : ", at most ") + readable_duration(ttl) + " after it was made";
  if (ttl > 0 && ttl <= idle_ttl) when = readable_duration(ttl) + " after it was made";
  if (when.empty()) return "it stays until: atoll rm";
  bool is_paused = text_field(sandbox, "on_ttl") == "pause";
  return std::string(is_paused ? "it is paused " : "it is deleted ") + when +
         (is_paused ? "" : "; --idle-ttl, --ttl (168h at most) and --on-ttl pause keep it longer");
}

Result<int> run_command(const CommandLine& line, const CreateCommand& create) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object sandbox, create_when_built(api, create_body(create.sandbox)));
  if (line.format == Format::kJson) {
    print_json(sandbox);
    return 0;
  }
  printf("%s\n", readable_field(sandbox, "id").c_str());
  fprintf(stderr, "atoll: %s\n", end_text(sandbox).c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListCommand& list) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::array sandboxes, list_sandboxes(api, list));
  if (line.format == Format::kJson) {
    print_json(json::object{{"sandboxes", std::move(sandboxes)}});
    return 0;
  }
  if (list.columns == ListCommand::Columns::kIds) {
    for (const json::value& row : sandboxes)
      if (row.is_object()) printf("%s\n", readable_field(row.as_object(), "id").c_str());
    return 0;
  }
  printf("%-22s %-16s %-10s %-16s %s\n", "ID", "NAME", "STATE", "TEMPLATE", "CREATED");
  for (const json::value& row : sandboxes) print_row(row);
  return 0;
}

Result<int> run_command(const CommandLine& line, const ShowCommand& show) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object sandbox, api.show_sandbox(show.id));
  if (line.format == Format::kJson) {
    print_json(sandbox);
    return 0;
  }
  for (const auto& field : sandbox)
    printf("%-16s %s\n", escape_line(std::string(field.key())).c_str(),
           readable(field.value()).c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const RemoveCommand& remove) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::vector<std::string> ids, ids_to_remove(api, remove));
  json::array removed;
  int failed = 0;
  for (const std::string& id : ids) {
    auto done = api.remove_sandbox(id);
    if (done) {
      removed.emplace_back(id);
      continue;
    }
    ++failed;
    fprintf(stderr, "atoll: %s: %s\n", escape_line(id).c_str(),
            escape_controls(done.error().message()).c_str());
  }
  if (line.format == Format::kJson) print_json(json::object{{"removed", std::move(removed)}});
  return failed == 0 ? 0 : kExitPlatform;
}

Result<int> run_command(const CommandLine& line, const UsageCommand& usage) {
  ATOLL_TRY(Api api, connect(line));
  if (usage.id.empty()) return show_all_usage(line, api);
  ATOLL_TRY(std::string target, sandbox_target(usage.id));
  ATOLL_TRY(json::array execs, api.list(target + "/execs", "execs"));
  json::object total = total_usage(execs);
  if (line.format == Format::kJson) {
    json::array rows;
    for (const json::value& row : execs)
      if (const json::object* used = usage_of(row))
        rows.push_back(json::object{{"id", row.as_object().at("id")}, {"usage", *used}});
    print_json(json::object{{"execs", std::move(rows)}, {"total", std::move(total)}});
    return 0;
  }
  printf("%-8s %-14s %10s %10s %10s %11s %11s %11s\n", "EXEC", "VERDICT", "WALL ms", "USER ms",
         "SYSTEM ms", "PEAK", "READ", "WRITTEN");
  for (const json::value& row : execs)
    if (const json::object* used = usage_of(row))
      print_usage_row(readable_field(row.as_object(), "id"),
                      readable_field(row.as_object(), "verdict"), *used);
  print_usage_row("total", std::to_string(execs.size()) + " execs", total);
  return 0;
}

Result<int> run_command(const CommandLine& line, const PortsCommand& ports) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(ports.id));
  target += "/ports";
  if (ports.open) {
    json::object body;
    if (ports.expires) body["expires_in_ms"] = ports.expires->count();
    body["port"] = *ports.open;
    ATOLL_TRY(json::object signed_url,
              api.call({.method = http::Method::kPost, .target = target, .body = std::move(body)}));
    if (line.format == Format::kJson)
      print_json(signed_url);
    else
      printf("%s\n", readable_field(signed_url, "url").c_str());
    return 0;
  }
  ATOLL_TRY(json::array rows, api.list(target, "ports"));
  if (line.format == Format::kJson) {
    print_json(json::object{{"ports", std::move(rows)}});
    return 0;
  }
  printf("%-6s %-24s %s\n", "PORT", "ADDRESS", "PID");
  for (const json::value& row : rows)
    if (row.is_object())
      printf("%-6s %-24s %s\n", readable_field(row.as_object(), "port").c_str(),
             readable_field(row.as_object(), "address").c_str(),
             readable_field(row.as_object(), "pid").c_str());
  return 0;
}

}  // namespace atl::cli
