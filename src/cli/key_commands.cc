#include "cli/key_commands.h"

#include <stdio.h>

#include "cli/api.h"
#include "cli/readable.h"

namespace atl::cli {

namespace json = boost::json;

Result<int> run_command(const CommandLine& line, const CreateKeyCommand& create) {
  ATOLL_TRY(Api api, connect(line));
  json::object body;
  if (!create.tenant.empty()) body["tenant"] = create.tenant;
  if (!create.name.empty()) body["name"] = create.name;
  if (create.shape == CreateKeyCommand::Shape::kE2b) body["e2b"] = true;
  ATOLL_TRY(
      json::object key,
      api.call({.method = http::Method::kPost, .target = "/v1/keys", .body = std::move(body)}));
  if (line.format == Format::kJson)
    print_json(key);
  else
    printf("%s\n", readable_field(key, "key").c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListKeysCommand&) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::array keys, api.list("/v1/keys", "keys"));
  if (line.format == Format::kJson) {
    print_json(json::object{{"keys", std::move(keys)}});
    return 0;
  }
  printf("%-18s %-20s %-20s %s\n", "ID", "TENANT", "NAME", "CREATED");
  for (const json::value& value : keys) {
    if (!value.is_object()) continue;
    const json::object& key = value.as_object();
    printf("%-18s %-20s %-20s %s\n", readable_field(key, "id").c_str(),
           readable_field(key, "tenant").c_str(), readable_field(key, "name").c_str(),
           readable_field(key, "created_at").c_str());
  }
  return 0;
}

Result<int> run_command(const CommandLine& line, const RevokeKeyCommand& revoke) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY_VOID(api.call(
      {.method = http::Method::kDelete, .target = "/v1/keys/" + percent_encode(revoke.id)}));
  if (line.format == Format::kJson) print_json(json::object{{"revoked", revoke.id}});
  return 0;
}

}  // namespace atl::cli
