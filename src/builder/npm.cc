#include "builder/npm.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <sstream>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <openssl/evp.h>

#include "base/file.h"
#include "builder/http_get.h"
#include "linux/open_resolved.h"

namespace atl::builder {

namespace json = boost::json;

namespace {

constexpr const char* kPublicRegistry = "https://registry.npmjs.org";
constexpr uint64_t kMaxPackageBytes = 256ull << 20;
constexpr size_t kMaxDescriptionBytes = 1 << 20;
constexpr std::string_view kModules = "usr/local/lib/node_modules/";

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string registry() {
  const char* set = getenv("npm_config_registry");
  std::string url = set == nullptr ? "" : set;
  auto text = read_file("/etc/npmrc");
  if (url.empty() && text) url = registry_of_npmrc(*text);
  if (!url.starts_with("http")) url = kPublicRegistry;
  while (url.ends_with('/')) url.pop_back();
  return url;
}

std::string base_name(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::string integrity_of(EVP_MD_CTX* context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes;
  unsigned size = 0;
  ATOLL_CHECK(EVP_DigestFinal_ex(context, bytes.data(), &size) == 1);
  std::array<unsigned char, 4 * EVP_MAX_MD_SIZE> text;
  int length = EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(size));
  return "sha512-" + std::string(reinterpret_cast<char*>(text.data()), static_cast<size_t>(length));
}

Result<void> fetch_one(const store::NpmPackage& package, const std::string& path) {
  std::string named = package.name + " " + package.version;
  printf("fetching %s\n", named.c_str());
  fflush(stdout);
  ATOLL_TRY(Fd file, open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644));
  std::unique_ptr<EVP_MD_CTX, FreeDigest> hash(EVP_MD_CTX_new());
  ATOLL_CHECK(hash && EVP_DigestInit_ex(hash.get(), EVP_sha512(), nullptr) == 1);
  uint64_t bytes = 0;
  auto take = [&](std::string_view part) -> Result<void> {
    bytes += part.size();
    if (bytes > kMaxPackageBytes) return Error(Code::kInvalid, named + " is larger than 256 MiB");
    ATOLL_CHECK(EVP_DigestUpdate(hash.get(), part.data(), part.size()) == 1);
    return write_all(file.get(), part);
  };
  std::string url = registry() + "/" + package.name + "/-/" + base_name(package.name) + "-" +
                    package.version + ".tgz";
  auto answer = http_get({.url = url}, take);
  if (!answer || answer->status != 200)
    return Error(
        Code::kUnavailable,
        (answer ? url + " answered " + std::to_string(answer->status) : answer.error().message()) +
            "; make the npm registry reachable: set npm_config_registry before `atoll up`");
  std::string found = integrity_of(hash.get());
  if (found != package.integrity)
    return Error(Code::kInvalid,
                 named + ": the registry gave " + found + ", the template pins another");
  return {};
}

// What packages carry beside their programs.
bool is_documentation(std::string_view path) {
  for (std::string_view directory : {"include/", "share/", "man/", "docs/"})
    if (path.starts_with(directory)) return true;
  return path.ends_with(".md") && path.find('/') == path.npos;
}

Fd open_inside(int root, const std::string& path, int flags) {
  return linux::open_resolved(
      root, path, {.flags = flags, .mode = 0, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
}

Result<void> link_program(Tree& tree, const std::string& home, const std::string& name,
                          std::string_view path) {
  ATOLL_TRY(std::vector<std::string> parts, split_path(path));
  std::string program = home;
  for (const std::string& part : parts) program += "/" + part;
  Fd file = open_inside(tree.root(), program, O_RDONLY | O_NONBLOCK);
  if (!file || fchmod(file.get(), 0755) != 0 || name.empty() || name.find('/') != name.npos)
    return Error(Code::kInvalid, home + ": " + name + " is no program of the package");
  Fd programs = open_inside(tree.root(), "usr/local/bin", O_RDONLY | O_DIRECTORY);
  if (!programs) return Error(Code::kInvalid, "the image has no usr/local/bin");
  ATOLL_TRY_VOID(remove_at(programs.get(), name));
  std::string target = "../" + program.substr(std::string_view("usr/local/").size());
  if (symlinkat(target.c_str(), programs.get(), name.c_str()) != 0) return Error::system("symlink");
  return {};
}

Result<void> link_programs(Tree& tree, const std::string& home, const std::string& base) {
  Fd file = open_inside(tree.root(), home + "/package.json", O_RDONLY | O_NONBLOCK);
  auto text = file ? read_all(file.get(), kMaxDescriptionBytes)
                   : Result<std::string>(Error(Code::kInvalid, "none"));
  json::error_code error;
  json::value document = text ? json::parse(*text, error) : json::value();
  if (error || !document.is_object())
    return Error(Code::kInvalid, home + " has no package.json that can be read");
  const json::value* programs = document.get_object().if_contains("bin");
  if (programs == nullptr) return {};
  if (programs->is_string()) return link_program(tree, home, base, programs->get_string());
  if (!programs->is_object()) return Error(Code::kInvalid, home + ": \"bin\" is no object");
  for (const auto& [name, path] : programs->get_object()) {
    if (!path.is_string()) return Error(Code::kInvalid, home + ": \"bin\" has no path");
    ATOLL_TRY_VOID(link_program(tree, home, std::string(name), path.get_string()));
  }
  return {};
}

}  // namespace

std::string registry_of_npmrc(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](char c) { return c <= ' '; });
    constexpr std::string_view kKey = "registry=";
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return "";
}

Result<void> fetch_npm(const std::vector<store::NpmPackage>& packages,
                       const std::string& directory) {
  ATOLL_TRY_VOID(make_directory(directory, 0755));
  for (size_t i = 0; i < packages.size(); ++i)
    ATOLL_TRY_VOID(fetch_one(packages[i], directory + "/" + std::to_string(i) + ".tgz"));
  return {};
}

Result<void> install_npm(Tree& tree, const std::vector<store::NpmPackage>& packages,
                         const std::string& directory, UnpackBudget& budget) {
  for (size_t i = 0; i < packages.size(); ++i) {
    ATOLL_TRY(Fd file, open_file(directory + "/" + std::to_string(i) + ".tgz", O_RDONLY));
    ATOLL_TRY(ArchiveFile archive, ArchiveFile::open(file.get(), budget));
    std::string home = std::string(kModules) + packages[i].name;
    // The first part of every name in a package is one directory, by any name.
    auto place = [&](ArchiveEntry& entry) {
      size_t slash = entry.path.find('/');
      if (entry.type != ArchiveEntry::Type::kFile || slash == entry.path.npos) return false;
      std::string inner = entry.path.substr(slash + 1);
      if (is_documentation(inner)) return false;
      entry.path = home + "/" + inner;
      entry.uid = entry.gid = 0;
      entry.mode = (entry.mode & 0100) != 0 ? 0755 : 0644;
      return true;
    };
    ATOLL_TRY_VOID(tree.add(archive, Tree::Kind::kPlain, place));
    ATOLL_TRY_VOID(link_programs(tree, home, base_name(packages[i].name)));
  }
  return {};
}

}  // namespace atl::builder
