#include "cli/sandbox_commands.h"

#include <stdio.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "cli/api.h"
#include "cli/exit_code.h"
#include "cli/readable.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

Result<Api> connect(const CommandLine& line) {
  ATOLL_TRY(Server server, find_server(line.places, line.server));
  return Api(std::move(server));
}

std::string shown(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? "-" : readable(*value);
}

void print_json(const json::value& value) { printf("%s\n", json::serialize(value).c_str()); }

void print_row(const json::value& row) {
  if (!row.is_object()) return;
  const json::object& sandbox = row.as_object();
  printf("%-22s %-10s %-20s %s\n", shown(sandbox, "id").c_str(), shown(sandbox, "state").c_str(),
         shown(sandbox, "template").c_str(), shown(sandbox, "created_at").c_str());
}

}  // namespace

Result<int> run_create(const CommandLine& line, const CreateCommand& create) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object sandbox, api.create_sandbox(create.sandbox));
  if (line.format == Format::kJson)
    print_json(sandbox);
  else
    printf("%s\n", shown(sandbox, "id").c_str());
  return 0;
}

Result<int> run_list(const CommandLine& line) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::array sandboxes, api.list_sandboxes());
  if (line.format == Format::kJson) {
    print_json(json::object{{"sandboxes", std::move(sandboxes)}});
    return 0;
  }
  printf("%-22s %-10s %-20s %s\n", "ID", "STATE", "TEMPLATE", "CREATED");
  for (const json::value& row : sandboxes) print_row(row);
  return 0;
}

Result<int> run_show(const CommandLine& line, const ShowCommand& show) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object sandbox, api.show_sandbox(show.id));
  if (line.format == Format::kJson) {
    print_json(sandbox);
    return 0;
  }
  for (const auto& field : sandbox) {
    std::string name(field.key());
    printf("%-16s %s\n", escape_line(name).c_str(), shown(sandbox, name.c_str()).c_str());
  }
  return 0;
}

Result<int> run_remove(const CommandLine& line, const RemoveCommand& remove) {
  ATOLL_TRY(Api api, connect(line));
  json::array removed;
  int failed = 0;
  for (const std::string& id : remove.ids) {
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

}  // namespace atl::cli
