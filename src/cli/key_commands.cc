#include "cli/key_commands.h"

#include <stdio.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "cli/api.h"
#include "cli/readable.h"

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

}  // namespace

Result<int> run_create_key(const CommandLine& line, const CreateKeyCommand& create) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object key, api.create_key(create.tenant, create.name));
  if (line.format == Format::kJson)
    printf("%s\n", json::serialize(key).c_str());
  else
    printf("%s\n", shown(key, "key").c_str());
  return 0;
}

Result<int> run_list_keys(const CommandLine& line) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::array keys, api.list_keys());
  if (line.format == Format::kJson) {
    printf("%s\n", json::serialize(json::object{{"keys", std::move(keys)}}).c_str());
    return 0;
  }
  printf("%-18s %-20s %-20s %s\n", "ID", "TENANT", "NAME", "CREATED");
  for (const json::value& value : keys) {
    if (!value.is_object()) continue;
    const json::object& key = value.as_object();
    printf("%-18s %-20s %-20s %s\n", shown(key, "id").c_str(), shown(key, "tenant").c_str(),
           shown(key, "name").c_str(), shown(key, "created_at").c_str());
  }
  return 0;
}

Result<int> run_revoke_key(const CommandLine& line, const RevokeKeyCommand& revoke) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY_VOID(api.revoke_key(revoke.id));
  return 0;
}

}  // namespace atl::cli
