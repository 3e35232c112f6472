#include "cli/template_pack_commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/api.h"
#include "cli/progress.h"
#include "cli/readable.h"
#include "cli/tar.h"
#include "cli/template_commands.h"
#include "cli/template_example.h"
#include "cli/template_progress.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMaxManifestBytes = 256 * 1024;
constexpr size_t kBlockBytes = 512;
constexpr std::chrono::minutes kUploadTimeout{10};

std::string template_target(const std::string& name) {
  return "/v1/templates/" + percent_encode(name, "-@:");
}

void print_build(const json::object& build, Format format) {
  if (format == Format::kJson)
    print_json(build);
  else
    printf("%s\n", readable_field(build, "reference").c_str());
}

// The answer to a request that began a build, or its end if it has come already.
Result<json::object> finish_build(Api& api, json::object begun, Verbosity verbosity) {
  std::string name = text_field(begun, "template");
  if (text_field(begun, "state") == "built") return begun;
  return follow_build(api, name, verbosity);
}

Result<json::object> build_named(Api& api, const std::string& name,
                                 const BuildTemplateCommand& build) {
  json::object body{{"template", name}};
  if (build.freshness == BuildTemplateCommand::Freshness::kAnew) body["anew"] = true;
  ATOLL_TRY(json::object begun, api.call({.method = http::Method::kPost,
                                          .target = "/v1/templates",
                                          .body = std::move(body)}));
  return finish_build(api, std::move(begun), build.verbosity);
}

struct Upload {
  std::string name;
  bool anew = false;
  Verbosity verbosity = Verbosity::kQuiet;
};

Result<json::object> send_pack(Api& api, const Upload& upload,
                               std::function<Result<size_t>(std::span<char>)> source) {
  Api::Call call{
      .method = http::Method::kPut,
      .target = template_target(upload.name) + "/pack" + (upload.anew ? "?anew=true" : ""),
      .timeout = kUploadTimeout};
  call.headers.add("Content-Type", "application/x-tar");
  ATOLL_TRY(json::object begun, api.upload(call, {std::move(source), std::nullopt}));
  return finish_build(api, std::move(begun), upload.verbosity);
}

Result<json::object> build_folder(Api& api, const BuildTemplateCommand& build) {
  std::string manifest_path = build.source + "/template.toml";
  ATOLL_TRY(std::string manifest, read_file(manifest_path, kMaxManifestBytes));
  ATOLL_TRY(std::string name, read_template_name(manifest, manifest_path));
  ATOLL_TRY(TarWriter archive, TarWriter::open(build.source));
  Progress progress(name, std::nullopt);
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    ATOLL_TRY(size_t count, archive.read(piece));
    progress.add(count);
    return count;
  };
  return send_pack(api,
                   {.name = name,
                    .anew = build.freshness == BuildTemplateCommand::Freshness::kAnew,
                    .verbosity = build.verbosity},
                   source);
}

Result<int> build_all(Api& api, const BuildTemplateCommand& build, Format format) {
  ATOLL_TRY(json::array templates, api.list("/v1/templates", "templates"));
  int failures = 0;
  for (const json::value& value : templates) {
    if (!value.is_object()) continue;
    const json::object& known = value.get_object();
    bool wanted = text_field(known, "state") != "built" ||
                  build.freshness == BuildTemplateCommand::Freshness::kAnew;
    if (text_field(known, "origin") != "built_in" || !wanted) continue;
    auto built = build_named(api, text_field(known, "name"), build);
    if (built) {
      print_build(*built, format);
      continue;
    }
    // The others can still be built.
    fprintf(stderr, "atoll: %s\n", escape_line(built.error().message()).c_str());
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

Result<std::string> find_manifest_in_pack(int file) {
  char header[kBlockBytes];
  for (off_t offset = 0;;) {
    if (pread(file, header, sizeof header, offset) != static_cast<ssize_t>(sizeof header) ||
        memcmp(header + 257, "ustar", 5) != 0)
      return Error(Code::kInvalid,
                   "the file is no pack: a plain tar with template.toml at its top");
    offset += kBlockBytes;
    std::string name(header, strnlen(header, 100));
    std::string size_text(header + 124, 12);
    uint64_t size = strtoull(size_text.c_str(), nullptr, 8);
    if (name == "template.toml" || name == "./template.toml") {
      std::string text(std::min<uint64_t>(size, kMaxManifestBytes), '\0');
      ssize_t count = pread(file, text.data(), text.size(), offset);
      if (count != static_cast<ssize_t>(text.size())) return Error::system("read the pack");
      return text;
    }
    if (size > 1ull << 40) return Error(Code::kInvalid, "the pack has an entry without a size");
    offset += static_cast<off_t>((size + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
  }
}

Result<int> run_command(const CommandLine& line, const BuildTemplateCommand& build) {
  ATOLL_TRY(Api api, connect(line));
  if (build.what == BuildTemplateCommand::What::kAll) return build_all(api, build, line.format);
  bool is_folder = access((build.source + "/template.toml").c_str(), F_OK) == 0;
  ATOLL_TRY(json::object built,
            is_folder ? build_folder(api, build) : build_named(api, build.source, build));
  print_build(built, line.format);
  return 0;
}

Result<int> run_command(const CommandLine& line, const ShowTemplateCommand& show) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object known, api.call({.target = template_target(show.name)}));
  if (line.format == Format::kJson) {
    print_json(known);
    return 0;
  }
  for (const auto& field : known)
    printf("%-12s %s\n", std::string(field.key()).c_str(), readable(field.value()).c_str());
  return 0;
}

Result<int> run_command(const CommandLine& line, const RemoveTemplateCommand& remove) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY_VOID(
      api.call({.method = http::Method::kDelete, .target = template_target(remove.name)}));
  if (line.format == Format::kJson) print_json(json::object{{"removed", remove.name}});
  return 0;
}

Result<int> run_command(const CommandLine& line, const ExportTemplateCommand& exported) {
  ATOLL_TRY(Api api, connect(line));
  bool to_output = exported.file == "-";
  std::string path = exported.file.empty() ? exported.name + ".tar" : exported.file;
  Fd file;
  // Never in place of a file: a pack is worth as much as what it would replace.
  if (!to_output) {
    ATOLL_TRY(file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
  }
  int into = to_output ? STDOUT_FILENO : file.get();
  Result<void> written;
  auto received =
      api.stream({.target = template_target(exported.name) + "/pack"}, [&](std::string_view bytes) {
        written = write_all(into, bytes);
        return written.ok();
      });
  if (received && written) return 0;
  if (!to_output) unlink(path.c_str());
  return written ? std::move(received).error() : std::move(written).error();
}

Result<int> run_command(const CommandLine& line, const ImportTemplateCommand& imported) {
  ATOLL_TRY(Fd file, open_file(imported.file, O_RDONLY));
  ATOLL_TRY(std::string manifest, find_manifest_in_pack(file.get()));
  ATOLL_TRY(std::string name, read_template_name(manifest, imported.file));
  ATOLL_TRY(Api api, connect(line));
  auto source = [&](std::span<char> piece) -> Result<size_t> {
    ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0) return Error::system("read " + imported.file);
    return static_cast<size_t>(count);
  };
  ATOLL_TRY(json::object built,
            send_pack(api, {.name = name, .verbosity = imported.verbosity}, source));
  print_build(built, line.format);
  return 0;
}

Result<int> run_command(const CommandLine&, const InitTemplateCommand& init) {
  std::filesystem::path folder = std::filesystem::absolute(init.directory).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  ATOLL_TRY_VOID(make_directory(folder.string(), 0755));
  std::string path = folder.string() + "/template.toml";
  std::string text = example_template(folder.filename().string());
  ATOLL_TRY(std::string name, read_template_name(text, path));
  ATOLL_TRY(Fd file, open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  ATOLL_TRY_VOID(write_all(file.get(), text));
  fprintf(stderr, "wrote %s; next: atoll template build %s\n", escape_line(path).c_str(),
          escape_line(init.directory).c_str());
  return 0;
}

}  // namespace atl::cli
