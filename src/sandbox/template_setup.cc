#include "sandbox/template_setup.h"

#include <fcntl.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "sandbox/archive.h"
#include "sandbox/files.h"
#include "store/tar_writer.h"

namespace atl::sandbox {
namespace {

constexpr uint64_t kMemoryBytes = 2ull << 30;
constexpr uint64_t kDiskBytes = 8ull << 30;
constexpr uint32_t kPids = 1024;
constexpr uint64_t kOutputBytes = 16ull << 20;
constexpr uint32_t kCommandMs = 30 * 60 * 1000;
constexpr uint64_t kTtlMs = 2 * 3600 * 1000;
constexpr size_t kPieceBytes = 64 * 1024;
constexpr uint32_t kMaxTopEntries = 1000;
// Mounts of the sandbox, and what is not to be kept.
constexpr std::string_view kLeftOut[] = {"dev", "proc", "run", "sys", "tmp"};

bool is_left_out(std::string_view name) {
  return std::find(std::begin(kLeftOut), std::end(kLeftOut), name) != std::end(kLeftOut);
}

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// A command that begins with a comment is shown as that.
std::string shown_command(const std::string& command) {
  if (!command.starts_with("# ")) return command;
  return command.substr(2, command.find('\n') - 2);
}

std::string ending_of(const store::ExecRow& row) {
  return row.exit_code ? "exit code " + std::to_string(*row.exit_code) : row.verdict;
}

constexpr std::string_view kHome = "home/user/";

// The part of a name beneath the folder; nothing if it is not there.
std::string_view beneath(std::string_view path, std::string_view folder) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path.starts_with(folder) ? path.substr(folder.size()) : std::string_view();
}

// As the builder copies the files of a pack: plain modes, and who owns a home owns what is in it.
bool edit_file(store::TarEntry& entry, const std::string& folder) {
  std::string path(beneath(entry.path, folder));
  if (entry.type == store::TarEntry::Type::kHardLink) entry.target = beneath(entry.target, folder);
  entry.path = path;
  bool is_program = (entry.mode & 0100) != 0 || entry.type == store::TarEntry::Type::kDirectory;
  entry.mode = is_program ? 0755 : 0644;
  return !path.empty();
}

}  // namespace

Task<Result<Fd>> TemplateSetup::run(Digest image, const store::TemplateManifest& manifest) {
  CreateSandbox request;
  request.template_name = manifest.name;
  request.image = image;
  request.memory_bytes = kMemoryBytes;
  request.disk_bytes = kDiskBytes;
  request.takes_less_disk = true;
  request.pids = kPids;
  request.output_bytes = kOutputBytes;
  request.ttl_ms = kTtlMs;
  request.metadata = "{\"atoll\":\"template setup\"}";
  ATOLL_CO_TRY(Created created, co_await sandboxes_.create(build_->tenant(), request));
  auto tree = co_await run_inside(created.sandbox, manifest);
  auto removed = co_await sandboxes_.remove(build_->tenant(), created.sandbox->id());
  if (!removed) log_warning("left for the sweep", {removed.error()});
  co_return tree;
}

Task<Result<Fd>> TemplateSetup::run_inside(std::shared_ptr<Sandbox> sandbox,
                                           const store::TemplateManifest& manifest) {
  if (on_setup_) ATOLL_CO_TRY_VOID(co_await on_setup_(sandbox));
  if (pack_ && !manifest.files.empty())
    ATOLL_CO_TRY_VOID(co_await put_files(sandbox, manifest.files + "/"));
  for (const std::string& command : manifest.setup)
    ATOLL_CO_TRY_VOID(co_await run_command(sandbox, command));
  build_->append("reading what it has made\n");
  co_return co_await read_root(sandbox);
}

Task<Result<void>> TemplateSetup::put_files(std::shared_ptr<Sandbox> sandbox, std::string folder) {
  ArchiveUpload archive = ArchiveUpload::of(std::move(pack_));
  std::string home = folder + std::string(kHome);
  bool has_home = false;
  ArchiveUpload::Edit of_root = [&](store::TarEntry& entry) {
    bool of_home = !beneath(entry.path, home).empty();
    has_home = has_home || of_home;
    return !of_home && edit_file(entry, folder);
  };
  ArchiveUpload::Edit of_home = [&](store::TarEntry& entry) { return edit_file(entry, home); };
  Files as_root(sandbox, "root");
  Files as_user(sandbox, "user");
  auto unpacked = co_await archive.unpack(as_root, "/", of_root);
  if (unpacked && has_home) unpacked = co_await archive.unpack(as_user, "/home/user", of_home);
  if (!unpacked) co_return std::move(unpacked).error().with_context("files of the template");
  co_return Result<void>();
}

Task<Result<void>> TemplateSetup::run_command(std::shared_ptr<Sandbox> sandbox,
                                              std::string command) {
  std::string shown = shown_command(command);
  build_->append("#step 4/5 " + std::string(kSetupTitle) + "\n$ " + shown + "\n");
  ExecRequest request{.arguments = {"/bin/sh", "-ec", command + "\n"}, .environment = {}};
  request.user = "root";
  request.directory = "/";
  request.timeout_ms = kCommandMs;
  request.output_limit_bytes = kOutputBytes;
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await sandbox->start_exec(request, "{}"));
  uint64_t offsets[2] = {0, 0};
  while (true) {
    bool ended = exec->ended();
    for (agent::Stream stream : {agent::Stream::kStdout, agent::Stream::kStderr}) {
      uint64_t& offset = offsets[stream == agent::Stream::kStdout ? 0 : 1];
      ATOLL_CO_TRY(std::string piece, exec->output().read(stream, offset, kPieceBytes));
      offset += piece.size();
      ended = ended && piece.empty();
      if (!piece.empty()) build_->append(piece);
    }
    if (ended) break;
    bool changed = exec->ended();
    if (!changed) changed = co_await exec->wait_changed();
    if (!changed) co_return Error(Code::kCancelled, "the build was given up");
  }
  if (exec->row().verdict == "ok") co_return Result<void>();
  co_return Error(Code::kInvalid, "setup: " + shown + ": " + ending_of(exec->row()))
      .with_reason("build_refused");
}

Task<Result<void>> TemplateSetup::read_directory(std::shared_ptr<Sandbox> sandbox, std::string name,
                                                 int into) {
  Files files(sandbox, "root");
  std::string path = "/" + name;
  ATOLL_CO_TRY(std::unique_ptr<TreeReader> tree, co_await files.pack(path));
  while (true) {
    ATOLL_CO_TRY(std::optional<FileEntry> entry, co_await tree->next_entry());
    if (!entry) co_return Result<void>();
    store::TarEntry tar = to_tar_entry(*entry);
    tar.path = name + "/" + tar.path;
    if (tar.type == store::TarEntry::Type::kHardLink) tar.target = name + "/" + tar.target;
    std::string header = store::tar_header(tar);
    ATOLL_CO_TRY_VOID(write_all(into, header));
    if (tar.type != store::TarEntry::Type::kFile) continue;
    for (uint64_t left = tar.size; left > 0;) {
      ATOLL_CO_TRY(std::string_view bytes, co_await tree->next_bytes());
      if (bytes.empty()) break;
      left -= std::min<uint64_t>(left, bytes.size());
      ATOLL_CO_TRY_VOID(write_all(into, bytes));
    }
    std::string padding = store::tar_padding(tar.size);
    ATOLL_CO_TRY_VOID(write_all(into, padding));
  }
}

// A file that lies in the root itself.
Task<Result<void>> TemplateSetup::read_file(std::shared_ptr<Sandbox> sandbox, store::TarEntry entry,
                                            int into) {
  Files files(sandbox, "root");
  std::string path = "/" + entry.path;
  ATOLL_CO_TRY(std::unique_ptr<FileReader> file, co_await files.read(path, 0, UINT64_MAX));
  entry.size = file->bytes_left();
  std::string header = store::tar_header(entry);
  ATOLL_CO_TRY_VOID(write_all(into, header));
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await file->next());
    if (bytes.empty()) break;
    ATOLL_CO_TRY_VOID(write_all(into, bytes));
  }
  std::string padding = store::tar_padding(entry.size);
  co_return write_all(into, padding);
}

// A directory at a time: what is mounted in a sandbox is not part of its root.
Task<Result<Fd>> TemplateSetup::read_root(std::shared_ptr<Sandbox> sandbox) {
  ATOLL_CO_TRY(Fd file, open_file(directory_, O_RDWR | O_TMPFILE, 0600));
  Files files(sandbox, "root");
  ListFiles request{.path = "/", .cursor = "", .depth = 1, .limit = kMaxTopEntries};
  ATOLL_CO_TRY(std::vector<FileEntry> top, co_await files.list(request));
  for (const FileEntry& entry : top) {
    std::string name = last_part(entry.path);
    if (is_left_out(name)) continue;
    store::TarEntry tar = to_tar_entry(entry);
    tar.path = name;
    tar.size = 0;
    bool is_directory = tar.type == store::TarEntry::Type::kDirectory;
    if (entry.type == agent::EntryType::kFile) {
      ATOLL_CO_TRY_VOID(co_await read_file(sandbox, tar, file.get()));
      continue;
    }
    if (!is_directory && tar.type != store::TarEntry::Type::kSymlink) continue;
    std::string header = store::tar_header(tar);
    ATOLL_CO_TRY_VOID(write_all(file.get(), header));
    if (is_directory) ATOLL_CO_TRY_VOID(co_await read_directory(sandbox, name, file.get()));
  }
  std::string end = store::tar_end();
  ATOLL_CO_TRY_VOID(write_all(file.get(), end));
  co_return file;
}

}  // namespace atl::sandbox
