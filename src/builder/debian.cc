#include "builder/debian.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "builder/apt_sources.h"
#include "builder/program.h"

namespace atl::builder {
namespace {

// One time for every file that a package does not date earlier, so that the same packages give the
// same image.
constexpr const char* kTime = "1700000000";
constexpr uint64_t kMaxCacheBytes = 4ull << 30;

constexpr const char* kDpkgOptions[] = {
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/doc-base/*",
    "path-exclude=/usr/share/lintian/*",
    "path-exclude=/usr/share/bug/*",
    "path-exclude=/usr/share/bash-completion/*",
    "path-exclude=/usr/share/pixmaps/*",
    "path-exclude=/usr/lib/udev/*",
    "path-exclude=/usr/lib/systemd/*",
    "force-unsafe-io",
};

// Directories that stay, empty.
constexpr std::string_view kEmptied[] = {"boot/",
                                         "dev/",
                                         "etc/apt/",
                                         "media/",
                                         "proc/",
                                         "run/",
                                         "sys/",
                                         "tmp/",
                                         "usr/share/info/",
                                         "usr/share/locale/",
                                         "usr/share/man/",
                                         "var/cache/",
                                         "var/lib/apt/",
                                         "var/lib/dpkg/updates/",
                                         "var/log/"};

// Copies, not links: what scripts do to theirs must not reach the cache. apt checks the digests of
// what it takes from there.
constexpr const char* kTakeFromCache =
    "mkdir -p \"$1/var/cache/apt/archives\" && "
    "find /cache -maxdepth 1 -name '*.deb' -exec cp -t \"$1/var/cache/apt/archives\" {} +";
constexpr const char* kKeepInCache =
    "cd \"$1/var/cache/apt/archives\" && for package in *.deb; do "
    "[ -f \"$package\" ] && [ ! -e \"/cache/$package\" ] || continue; "
    "cp \"$package\" /cache/.new && mv /cache/.new \"/cache/$package\"; done";
// Bytecode carries the time of its source: all sources get theirs before it is made.
constexpr const char* kCompilePython =
    "if [ -x \"$1/usr/bin/python3\" ]; then echo '#step 2/5 compiling Python'; "
    "find \"$1/usr\" -name __pycache__ -prune -exec rm -rf {} + && "
    "find \"$1/usr\" -name '*.py' -exec touch -h -d @1700000000 {} + && "
    "chroot \"$1\" sh -c 'python3 -m compileall -j 2 -q -f --invalidation-mode timestamp "
    "/usr/lib/python3*'; fi";

// Beginning anew is simpler than choosing, and packages come back with the next build.
void bound_cache() {
  std::error_code error;
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/cache", error))
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  if (bytes < kMaxCacheBytes) return;
  for (const auto& entry : std::filesystem::directory_iterator("/cache", error))
    std::filesystem::remove(entry.path(), error);
}

struct Debootstrap {
  const store::DebianSource& source;
  const std::string& files;
  const std::string& target;
  std::vector<std::string> reach;  // options for apt
};

std::vector<std::string> command(const Debootstrap& order) {
  std::vector<std::string> words = {
      "/usr/bin/mmdebstrap", "--mode=unshare",          "--format=tar",
      "--variant=essential", "--skip=essential/unlink", "--skip=chroot/mount/sys"};
  words.push_back("--aptopt=Acquire::Retries \"5\";");  // the host may say otherwise below
  for (const std::string& option : order.reach) words.push_back("--aptopt=" + option);
  words.push_back("--aptopt=APT::Install-Recommends \"false\";");
  for (const char* option : kDpkgOptions) words.push_back(std::string("--dpkgopt=") + option);
  std::string packages;
  for (const std::string& package : order.source.packages)
    packages += (packages.empty() ? "" : ",") + package;
  if (!packages.empty()) words.push_back("--include=" + packages);
  // An essential package wants usrmerge, which brings 45 MB of Perl, or usr-is-merged, which
  // installs only where /bin and its like are links from the beginning: this hook makes them.
  words.push_back("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr");
  words.push_back(std::string("--setup-hook=") + kTakeFromCache);
  words.push_back(std::string("--customize-hook=") + kKeepInCache);
  if (!order.files.empty()) words.push_back("--customize-hook=cp -rT " + order.files + " \"$1\"");
  words.push_back(std::string("--customize-hook=") + kCompilePython);
  words.insert(words.end(), {order.source.suite, order.target, "/build/sources.list"});
  return words;
}

}  // namespace

std::vector<std::string> build_environment() {
  std::vector<std::string> made = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                   "LANG=C.UTF-8",
                                   "HOME=/nonexistent",
                                   "TMPDIR=/build/tmp",
                                   "DEBIAN_FRONTEND=noninteractive",
                                   std::string("SOURCE_DATE_EPOCH=") + kTime,
                                   "PYTHONHASHSEED=0"};
  for (const char* name : {"http_proxy", "https_proxy", "no_proxy"})
    if (const char* value = getenv(name)) made.push_back(std::string(name) + "=" + value);
  return made;
}

Result<std::vector<std::string>> write_apt_sources(const std::string& suite) {
  ATOLL_TRY(std::vector<std::string> entries, host_apt_sources(suite));
  std::string list;
  for (const std::string& entry : entries) list += entry + "\n";
  ATOLL_TRY_VOID(replace_file("/build/sources.list", list, 0644));
  ATOLL_TRY(std::string dump,
            read_program({{"/usr/bin/apt-config", "dump"}, {"PATH=/usr/bin:/bin"}}));
  return reach_options(dump);
}

Result<void> make_debian_root(const store::DebianSource& source, const std::string& files,
                              const std::string& target) {
  bound_cache();
  ATOLL_TRY_VOID(make_directory("/build/tmp", 01777));
  if (chmod("/build/tmp", 01777) != 0) return Error::system("chmod");
  ATOLL_TRY(std::vector<std::string> reach, write_apt_sources(source.suite));
  Debootstrap order{source, files, target, std::move(reach)};
  return run_program({command(order), build_environment()});
}

bool is_kept_of_debian(std::string_view path, store::TemplateKind kind) {
  if (kind == store::TemplateKind::kMonitor && path.starts_with("boot/vmlinuz")) return true;
  for (std::string_view directory : kEmptied)
    if (path.starts_with(directory)) return false;
  if (path == "etc/.pwd.lock" || path.starts_with("var/lib/dpkg/lock")) return false;
  if (path.starts_with("var/lib/dpkg/") && path.ends_with("-old")) return false;
  bool in_etc = path.starts_with("etc/") && path.find('/', 4) == path.npos;
  return !(in_etc && path.ends_with('-'));
}

}  // namespace atl::builder
