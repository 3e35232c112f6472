#include "cli/template_commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/image_file.h"
#include "cli/readable.h"
#include "cli/state_directory.h"
#include "linux/lock_file.h"
#include "store/toml_section.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

bool is_template_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !name.empty() && name.size() <= 63 && name[0] != '-' &&
         name.find_first_not_of(kAllowed) == name.npos;
}

}  // namespace

Result<std::string> read_template_name(const std::string& manifest, const std::string& path) {
  ATOLL_TRY(store::TomlDocument document, store::TomlDocument::parse(manifest, path));
  auto name = document.root()["name"].value<std::string>();
  if (!name || !is_template_name(*name))
    return Error(Code::kInvalid, path + ": name must be lower-case letters, digits and hyphens");
  return *name;
}

namespace {

Result<Digest> read_digest(const std::string& path) {
  ATOLL_TRY(std::string text, read_file(path, 256));
  text.resize(text.find_last_not_of(" \n") + 1);
  auto digest = Digest::parse(text);
  if (!digest) return Error(Code::kCorrupt, path + " is not a sha256");
  return *digest;
}

Result<void> write_new(const std::string& path, std::string_view bytes) {
  ATOLL_TRY(Fd fd, open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  ATOLL_TRY_VOID(write_all(fd.get(), bytes));
  if (fsync(fd.get()) != 0) return Error::system("fsync " + path);
  return {};
}

// Manifest and digest change places with the old pair in one step: a reader must never see a
// mixture.
Result<void> publish(const std::string& staged, const std::string& target) {
  if (renameat2(AT_FDCWD, staged.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return remove_tree(staged);
  if (errno != ENOENT) return Error::system("exchange " + target);
  if (rename(staged.c_str(), target.c_str()) != 0) return Error::system("rename to " + target);
  return {};
}

Result<std::vector<InstalledTemplate>> read_templates(const Places& places) {
  std::vector<InstalledTemplate> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(places.templates(), error)) {
    std::string name = entry.path().filename().string();
    if (!is_template_name(name)) continue;
    ATOLL_TRY(Digest image, read_digest(entry.path().string() + "/image"));
    found.push_back({name, image});
  }
  if (error && error.value() != ENOENT)
    return Error::from_errno("read " + places.templates(), error.value());
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

void print_template(const InstalledTemplate& installed, Format format) {
  if (format == Format::kJson) {
    json::object answer = {{"name", installed.name}, {"image", installed.image.string()}};
    printf("%s\n", json::serialize(answer).c_str());
  } else {
    printf("%-24s %s\n", installed.name.c_str(), installed.image.string().substr(0, 12).c_str());
  }
}

}  // namespace

Result<InstalledTemplate> install_template(const Places& places, const std::string& directory) {
  std::string manifest_path = directory + "/template.toml";
  ATOLL_TRY(std::string manifest, read_file(manifest_path));
  ATOLL_TRY(std::string name, read_template_name(manifest, manifest_path));
  ATOLL_TRY(Digest digest, read_digest(directory + "/digest"));
  // One at a time: they share the name of what is being staged.
  ATOLL_TRY([[maybe_unused]] linux::LockFile lock,
            linux::LockFile::acquire(places.templates() + "/.lock"));
  ATOLL_TRY_VOID(install_image(directory + "/image.erofs", digest, places.images()));

  std::string staged = places.templates() + "/.new-" + name;
  ATOLL_TRY_VOID(remove_tree(staged));
  ATOLL_TRY_VOID(make_directory(staged, 0755));
  ATOLL_TRY_VOID(write_new(staged + "/template.toml", manifest));
  ATOLL_TRY_VOID(write_new(staged + "/image", digest.string() + "\n"));
  ATOLL_TRY_VOID(publish(staged, places.templates() + "/" + name));
  return InstalledTemplate{name, digest};
}

Result<int> run_command(const CommandLine& line, const AddTemplateCommand& add) {
  if (geteuid() != 0) return Error(Code::kDenied, "atoll template add must run as root");
  umask(022);
  ATOLL_TRY(Identity daemon, find_daemon_identity());
  ATOLL_TRY_VOID(make_state_directories(line.places, daemon));
  ATOLL_TRY(InstalledTemplate installed, install_template(line.places, add.directory));
  print_template(installed, line.format);
  return 0;
}

// Without a server there is still what is installed.
Result<int> list_installed(const CommandLine& line) {
  ATOLL_TRY(std::vector<InstalledTemplate> found, read_templates(line.places));
  if (line.format == Format::kText) {
    for (const InstalledTemplate& installed : found) print_template(installed, line.format);
    return 0;
  }
  json::array rows;
  for (const InstalledTemplate& installed : found)
    rows.push_back({{"name", installed.name}, {"image", installed.image.string()}});
  printf("%s\n", json::serialize(json::object{{"templates", std::move(rows)}}).c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListTemplatesCommand&) {
  ATOLL_TRY(Api api, connect(line));
  auto listed = api.list("/v1/templates", "templates");
  if (!listed && listed.error().code() == Code::kUnavailable && listed.error().reason().empty())
    return list_installed(line);
  if (!listed) return std::move(listed).error();
  if (line.format == Format::kJson) {
    printf("%s\n", json::serialize(json::object{{"templates", std::move(*listed)}}).c_str());
    return 0;
  }
  printf("%-24s %-10s %-10s %10s  %s\n", "NAME", "ORIGIN", "STATE", "SIZE", "DESCRIPTION");
  for (const json::value& value : *listed) {
    if (!value.is_object()) continue;
    const json::object& row = value.get_object();
    uint64_t bytes = number_field(row, "image_bytes");
    printf("%-24s %-10s %-10s %10s  %s\n", readable_field(row, "name").c_str(),
           readable_field(row, "origin").c_str(), readable_field(row, "state").c_str(),
           bytes == 0 ? "-" : readable_size(bytes).c_str(),
           readable_field(row, "description").c_str());
  }
  return 0;
}

}  // namespace atl::cli
