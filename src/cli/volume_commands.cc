#include "cli/volume_commands.h"

#include <stdio.h>

#include "cli/api.h"
#include "cli/readable.h"
#include "cli/size.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

std::string volume_target(const std::string& name) { return "/v1/volumes/" + percent_encode(name); }

Result<int> create_volume(const CommandLine& line, Api& api, const VolumeCommand& command) {
  json::object body{{"name", command.names.at(0)}, {"bytes", command.bytes}};
  ATOLL_TRY(
      json::object made,
      api.call({.method = http::Method::kPost, .target = "/v1/volumes", .body = std::move(body)}));
  if (line.format == Format::kJson)
    print_json(made);
  else
    printf("%s\n", readable_field(made, "name").c_str());
  return 0;
}

// "2 (ro)", "1", or "-".
std::string users_of(const json::object& volume) {
  const json::value* users = volume.if_contains("used_by");
  if (users == nullptr || !users->is_array() || users->get_array().empty()) return "-";
  const json::value& first = users->get_array().front();
  bool reads = first.is_object() && text_field(first.as_object(), "mode") == "ro";
  return std::to_string(users->get_array().size()) + (reads ? " (ro)" : "");
}

Result<int> list_volumes(const CommandLine& line, Api& api) {
  ATOLL_TRY(json::object answer, api.call({.target = "/v1/volumes"}));
  if (line.format == Format::kJson) {
    print_json(answer);
    return 0;
  }
  printf("%-24s %11s %-10s %s\n", "NAME", "BYTES", "SANDBOXES", "CREATED");
  const json::value* rows = answer.if_contains("volumes");
  if (rows == nullptr || !rows->is_array()) return 0;
  for (const json::value& row : rows->get_array()) {
    if (!row.is_object()) continue;
    const json::object& volume = row.as_object();
    printf("%-24s %11s %-10s %s\n", readable_field(volume, "name").c_str(),
           readable_field(volume, "bytes").c_str(), users_of(volume).c_str(),
           readable_field(volume, "created_at").c_str());
  }
  return 0;
}

Result<int> show_volume(const CommandLine& line, Api& api, const std::string& name) {
  ATOLL_TRY(json::object volume, api.call({.target = volume_target(name)}));
  if (line.format == Format::kJson) {
    print_json(volume);
    return 0;
  }
  for (const auto& field : volume)
    printf("%-16s %s\n", escape_line(std::string(field.key())).c_str(),
           readable(field.value()).c_str());
  return 0;
}

Result<int> remove_volumes(const CommandLine& line, Api& api, const VolumeCommand& command) {
  json::array removed;
  for (const std::string& name : command.names) {
    ATOLL_TRY([[maybe_unused]] json::object none,
              api.call({.method = http::Method::kDelete, .target = volume_target(name)}));
    removed.emplace_back(name);
  }
  if (line.format == Format::kJson) print_json(json::object{{"removed", std::move(removed)}});
  return 0;
}

}  // namespace

Result<VolumeMount> parse_volume(const std::string& word) {
  VolumeMount mount;
  size_t colon = word.find(':');
  if (colon != word.npos) {
    mount.name = word.substr(0, colon);
    mount.path = word.substr(colon + 1);
    if (size_t end = mount.path.rfind(':'); end != mount.path.npos) {
      mount.mode = mount.path.substr(end + 1);
      mount.path.resize(end);
    }
  }
  bool has_mode = mount.mode == "rw" || mount.mode == "ro";
  if (mount.name.empty() || !mount.path.starts_with('/') || !has_mode)
    return Error(Code::kInvalid, "\"" + word + "\" is not NAME:/PATH or NAME:/PATH:ro");
  return mount;
}

Result<int> run_command(const CommandLine& line, const VolumeCommand& volume) {
  using What = VolumeCommand::What;
  ATOLL_TRY(Api api, connect(line));
  if (volume.what == What::kCreate) return create_volume(line, api, volume);
  if (volume.what == What::kShow) return show_volume(line, api, volume.names.at(0));
  if (volume.what == What::kRemove) return remove_volumes(line, api, volume);
  return list_volumes(line, api);
}

}  // namespace atl::cli
