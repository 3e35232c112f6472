#include "cli/snapshot_packs.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/progress.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

Result<json::object> seal(Api& api, const std::string& id) {
  ATOLL_TRY(std::string target, snapshot_target(id));
  Api::Call call{.method = http::Method::kPost, .target = target + "/seal"};
  call.timeout += kMostSealTime;
  return api.call(call);
}

Result<int> seal_snapshot(const CommandLine& line, Api& api, const std::string& id) {
  ATOLL_TRY(json::object sealed, seal(api, id));
  if (line.format == Format::kJson)
    print_json(sealed);
  else
    printf("%s bytes, %s of them new\n", readable_field(sealed, "sealed_bytes").c_str(),
           readable_field(sealed, "new_bytes").c_str());
  return 0;
}

Result<int> export_snapshot(const CommandLine& line, Api& api, const SnapshotCommand& command) {
  const std::string& id = command.ids.at(0);
  ATOLL_TRY(std::string target, snapshot_target(id));
  bool to_output = command.file == "-";
  std::string path = command.file.empty() ? id + ".snapshot" : command.file;
  ATOLL_TRY(json::object sealed, seal(api, id));
  Fd file;
  // Never in place of a file: a snapshot is worth as much as what it would replace.
  if (!to_output) {
    ATOLL_TRY(file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  }
  Progress progress(id, number_field(sealed, "sealed_bytes"));
  int into = to_output ? STDOUT_FILENO : file.get();
  Result<void> written;
  auto received = api.stream({.target = target + "/pack"}, [&](std::string_view bytes) {
    progress.add(bytes.size());
    written = write_all(into, bytes);
    return written.ok();
  });
  if (received && written) {
    if (line.format == Format::kJson && !to_output) print_json(json::object{{"file", path}});
    return 0;
  }
  if (!to_output) unlink(path.c_str());
  return written ? std::move(received).error() : std::move(written).error();
}

Result<int> import_snapshot(const CommandLine& line, Api& api, const std::string& path) {
  Fd file;
  if (path != "-") {
    ATOLL_TRY(file, open_file(path, O_RDONLY));
  }
  int from = path == "-" ? STDIN_FILENO : file.get();
  struct stat facts;
  std::optional<uint64_t> bytes;
  if (fstat(from, &facts) == 0 && S_ISREG(facts.st_mode))
    bytes = static_cast<uint64_t>(facts.st_size);
  Progress progress(path, bytes);
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    ssize_t count = read(from, piece.data(), piece.size());
    if (count < 0) return Error::system("read " + path);
    progress.add(static_cast<uint64_t>(count));
    return static_cast<size_t>(count);
  };
  Api::Call call{.method = http::Method::kPost, .target = "/v1/snapshots"};
  call.timeout += kMostSealTime;
  call.headers.add("Content-Type", "application/vnd.atoll.snapshot");
  ATOLL_TRY(json::object made, api.upload(call, {source, bytes}));
  if (line.format == Format::kJson)
    print_json(made);
  else
    printf("%s\n", readable_field(made, "id").c_str());
  return 0;
}

}  // namespace

Result<std::string> snapshot_target(const std::string& id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789";
  if (id.empty() || id.size() > 64 || id.find_first_not_of(kAllowed) != id.npos)
    return Error(Code::kInvalid, "\"" + id + "\" is not the id of a snapshot");
  return "/v1/snapshots/" + id;
}

Result<int> run_pack_command(const CommandLine& line, Api& api, const SnapshotCommand& command) {
  using What = SnapshotCommand::What;
  if (command.what == What::kSeal) return seal_snapshot(line, api, command.ids.at(0));
  if (command.what == What::kExport) return export_snapshot(line, api, command);
  return import_snapshot(line, api, command.file);
}

}  // namespace atl::cli
