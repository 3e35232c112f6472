#include "builder/go_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "builder/http_get.h"
#include "builder/module_sum.h"
#include "builder/program.h"
#include "builder/source_change.h"
#include "linux/open_resolved.h"

namespace atl::builder {
namespace {

constexpr const char* kPublicServer = "https://proxy.golang.org";
constexpr const char* kToolchainModule = "golang.org/toolchain";
constexpr const char* kToolchainZip = "/build/go/toolchain.zip";
constexpr const char* kModuleZip = "/build/go/module.zip";
constexpr const char* kToolchain = "/build/go/toolchain";
constexpr const char* kModule = "/build/go/module";
constexpr const char* kProgram = "/build/go/program";
constexpr uint64_t kMaxZipBytes = 512ull << 20;
constexpr uint64_t kMaxProgramBytes = 1ull << 30;
constexpr std::string_view kRecordPlace = "usr/lib/atoll";
constexpr const char* kRecordName = "go-program";

// What one zip is, where it comes from and where it goes.
struct Zip {
  std::string module, version, sum;
  const char* file;
  const char* directory;
  // Of what is in it, by path: what mode it gets; 0: it is left out.
  std::function<mode_t(const std::string& path)> mode_of;

  std::string named() const { return module + "@" + version; }
};

// Zips of modules have no modes: as Go itself has it, what is in two of the folders are programs.
// Compiling needs none of a third of the others.
mode_t mode_in_toolchain(const std::string& path) {
  for (std::string_view folder : {"test/", "api/", "doc/", "misc/"})
    if (path.starts_with(folder)) return 0;
  if (path.find("/testdata/") != path.npos) return 0;
  return path.starts_with("bin/") || path.starts_with("pkg/tool/") ? 0755 : 0644;
}

Zip toolchain_of(const store::GoProgram& program) {
  return {.module = kToolchainModule,
          .version = "v0.0.1-go" + program.toolchain + ".linux-amd64",
          .sum = program.toolchain_sum,
          .file = kToolchainZip,
          .directory = kToolchain,
          .mode_of = mode_in_toolchain};
}

Zip module_of(const store::GoProgram& program) {
  return {.module = program.module,
          .version = program.version,
          .sum = program.sum,
          .file = kModuleZip,
          .directory = kModule,
          .mode_of = [](const std::string&) -> mode_t { return 0644; }};
}

void say(const std::string& line) {
  printf("%s\n", line.c_str());
  fflush(stdout);
}

std::vector<std::string> servers() {
  const char* set = getenv("GOPROXY");
  std::string list = set == nullptr ? "" : set;
  return servers_of_goproxy(list.empty() ? kPublicServer : list);
}

Result<void> fetch_from(const std::string& server, const Zip& zip) {
  ATOLL_TRY(Fd file, open_file(zip.file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644));
  uint64_t bytes = 0;
  auto take = [&](std::string_view part) -> Result<void> {
    bytes += part.size();
    if (bytes > kMaxZipBytes) return Error(Code::kInvalid, zip.named() + " is over 512 MiB");
    return write_all(file.get(), part);
  };
  std::string url =
      server + "/" + escape_module(zip.module) + "/@v/" + escape_module(zip.version) + ".zip";
  ATOLL_TRY(HttpAnswer answer, http_get({.url = url}, take));
  if (answer.status == 200) return {};
  return Error(Code::kUnavailable, url + " answered " + std::to_string(answer.status));
}

Result<void> fetch_zip(const Zip& zip, const std::string& otherwise) {
  say("fetching " + zip.named());
  std::string failures;
  for (const std::string& server : servers()) {
    auto fetched = fetch_from(server, zip);
    if (fetched) return {};
    failures += fetched.error().message() + "; ";
  }
  if (failures.empty()) failures = "GOPROXY names no server; ";
  failures += "make a Go module proxy reachable: set GOPROXY before `atoll up`";
  if (!otherwise.empty())
    failures += ", or do without it: `atoll template build " + otherwise + "`";
  return Error(Code::kUnavailable, failures);
}

Result<void> unpack_zip(const Zip& zip, UnpackBudget& budget) {
  ATOLL_TRY(Fd file, open_file(zip.file, O_RDONLY | O_NOFOLLOW));
  ATOLL_TRY(ArchiveFile hashed, ArchiveFile::open_zip(file.get(), budget));
  ATOLL_TRY(std::string found, sum_of_module(hashed));
  if (found != zip.sum)
    return Error(Code::kInvalid,
                 zip.named() + ": the proxy gave " + found + ", the template pins another");
  ATOLL_TRY(Tree tree, Tree::open(zip.directory));
  ATOLL_TRY(ArchiveFile archive, ArchiveFile::open_zip(file.get(), budget));
  std::string prefix = zip.named() + "/";
  return tree.add(archive, Tree::Kind::kPlain, [&](ArchiveEntry& entry) {
    if (!entry.path.starts_with(prefix)) return false;
    entry.path.erase(0, prefix.size());
    entry.uid = entry.gid = 0;
    entry.mode = zip.mode_of(entry.path);
    return entry.mode != 0;
  });
}

std::vector<std::string> environment(const std::string& proxy) {
  std::vector<std::string> made = {
      "PATH=/build/go/toolchain/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/build/go/home",
      "TMPDIR=/build/go/tmp", "GOPATH=/build/go/path", "GOCACHE=/build/go/cache",
      "GOMODCACHE=/build/go/modules",
      // Nothing of the host's own settings, no other toolchain, no version control.
      "GOENV=off", "GOTOOLCHAIN=local", "GOWORK=off", "GOVCS=*:off", "GOTELEMETRY=off",
      // The module's go.sum decides, and is not written: what it does not pin is refused.
      "GOFLAGS=-mod=readonly", "GOSUMDB=off",
      "GONOSUMDB=", "GOINSECURE=", "GOPRIVATE=", "GOOS=linux", "GOARCH=amd64", "GOAMD64=v1",
      "CGO_ENABLED=0", "GOPROXY=" + proxy};
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy"})
    if (const char* value = getenv(name)) made.push_back(std::string(name) + "=" + value);
  return made;
}

Result<void> run_go(std::vector<std::string> words, const std::string& proxy) {
  for (const char* name : {"/build/go/home", "/build/go/tmp"})
    ATOLL_TRY_VOID(make_directory(name, 0700));
  // The folder it works in is the first of the flags of each command.
  words.insert(words.begin() + 1, {"-C", kModule});
  words.insert(words.begin(), std::string(kToolchain) + "/bin/go");
  return run_program({words, environment(proxy)});
}

std::string folder_of(const store::GoProgram& program) { return "./" + program.package; }

Result<void> copy_program(int target) {
  ATOLL_TRY(Fd source, open_file(kProgram, O_RDONLY | O_NOFOLLOW));
  struct stat facts;
  if (fstat(source.get(), &facts) != 0) return Error::system("stat the program");
  auto left = static_cast<uint64_t>(facts.st_size);
  if (!S_ISREG(facts.st_mode) || left > kMaxProgramBytes)
    return Error(Code::kInvalid, "Go made no program of at most 1 GiB");
  while (left > 0) {
    ssize_t count = sendfile(target, source.get(), nullptr, left);
    if (count <= 0) return Error::system("copy the program");
    left -= static_cast<uint64_t>(count);
  }
  return {};
}

// Made, beneath the tree's root, where there is none.
Result<Fd> open_place(Tree& tree, const std::vector<std::string>& parts) {
  std::string path = ".";
  for (const std::string& part : parts) {
    Fd above = linux::open_resolved(tree.root(), path,
                                    {.flags = O_RDONLY | O_DIRECTORY,
                                     .mode = 0,
                                     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
    if (!above) return Error::system("open " + path);
    if (mkdirat(above.get(), part.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::system("mkdir " + path);
    path += "/" + part;
  }
  Fd place = linux::open_resolved(tree.root(), path,
                                  {.flags = O_RDONLY | O_DIRECTORY,
                                   .mode = 0,
                                   .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
  if (!place) return Error::system("open " + path);
  return place;
}

Result<Fd> make_file(Tree& tree, std::string_view path, mode_t mode) {
  ATOLL_TRY(std::vector<std::string> parts, split_path(path));
  std::string name = parts.back();
  parts.pop_back();
  ATOLL_TRY(Fd place, open_place(tree, parts));
  ATOLL_TRY_VOID(remove_at(place.get(), name));
  ATOLL_TRY(Fd file, open_at(place.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  if (fchmod(file.get(), mode) != 0) return Error::system("chmod " + name);
  return file;
}

}  // namespace

std::vector<std::string> servers_of_goproxy(const std::string& list) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin <= list.size();) {
    size_t end = std::min(list.find_first_of(",|", begin), list.size());
    std::string one = list.substr(begin, end - begin);
    begin = end + 1;
    std::erase_if(one, [](char c) { return c <= ' '; });
    while (one.ends_with('/')) one.pop_back();
    if (one.starts_with("https://") || one.starts_with("http://")) found.push_back(one);
  }
  return found;
}

std::string escape_module(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    bool capital = c >= 'A' && c <= 'Z';
    if (capital) escaped += '!';
    escaped += capital ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return escaped;
}

Result<void> fetch_go(const store::GoProgram& program) {
  ATOLL_TRY_VOID(make_directory("/build/go", 0755));
  ATOLL_TRY_VOID(fetch_zip(toolchain_of(program), program.otherwise));
  return fetch_zip(module_of(program), program.otherwise);
}

Result<void> unpack_go(const store::GoProgram& program) {
  UnpackBudget budget;
  ATOLL_TRY_VOID(unpack_zip(toolchain_of(program), budget));
  Zip module = module_of(program);
  std::vector<std::string> without = program.without;
  module.mode_of = [&without](const std::string& path) -> mode_t {
    return std::erase(without, path) == 0 ? 0644 : 0;
  };
  ATOLL_TRY_VOID(unpack_zip(module, budget));
  // Else what somebody wanted to be without would be in the program.
  if (!without.empty()) return Error(Code::kInvalid, "the module has no " + without.front());
  return change_sources(kModule, program.changes);
}

Result<void> resolve_go(const store::GoProgram& program) {
  std::string list;
  for (const std::string& server : servers()) list += (list.empty() ? "" : "|") + server;
  // Looks at all packages that the program is made of, and so fetches the modules they are in.
  return run_go({"list", "-deps", "-f", "{{if .Error}}{{.Error}}{{end}}", folder_of(program)},
                list.empty() ? "off" : list);
}

Result<void> compile_go(const store::GoProgram& program) {
  say("#step 2/5 compiling " + program.module + "/" + program.package);
  std::string flags = "-s -w -buildid=";
  if (!program.stamp.empty()) flags += " -X " + program.stamp + "=" + program.version;
  return run_go({"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", kProgram,
                 folder_of(program)},
                "off");
}

Result<void> install_go(Tree& tree, const store::GoProgram& program) {
  ATOLL_TRY(Fd file, make_file(tree, program.to, 0755));
  ATOLL_TRY_VOID(copy_program(file.get()));
  ATOLL_TRY(Fd record, make_file(tree, std::string(kRecordPlace) + "/" + kRecordName, 0644));
  return write_all(record.get(), program.to + " " + program.module + " " + program.version + " " +
                                     program.sum + " go" + program.toolchain +
                                     (program.changes.empty() ? "\n" : " changed\n"));
}

}  // namespace atl::builder
