#include "store/template_pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "store/sha256.h"
#include "store/tar_reader.h"
#include "store/tar_writer.h"

namespace atl::store {
namespace {

// Changes when the same pack would give another image.
constexpr std::string_view kPipeline = "atoll image pipeline 3\n";
constexpr size_t kMaxManifestBytes = 256 * 1024;
constexpr size_t kStepBytes = 256 * 1024;
constexpr uint64_t kMaxFolderBytes = 4ull << 30;
constexpr const char* kManifest = "template.toml";

Error invalid(std::string message) {
  return Error(Code::kInvalid, std::move(message)).with_reason("invalid_template");
}

std::string_view plain(std::string_view path) {
  while (path.starts_with("./") || path.starts_with('/'))
    path.remove_prefix(path[0] == '/' ? 1 : 2);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Lengths before texts: no two lists of entries look the same.
void add_text(Sha256& hash, std::string_view text) {
  hash.update(std::to_string(text.size()) + ":");
  hash.update(text);
}

Result<Digest> hash_entry(TarReader& reader, const TarEntry& entry, std::string* manifest) {
  Sha256 hash;
  add_text(hash, plain(entry.path));
  add_text(hash, std::to_string(static_cast<int>(entry.type)) +
                     ((entry.mode & 0100) != 0 ? " program " : " ") + std::to_string(entry.size));
  add_text(hash, entry.target);
  std::string buffer(kStepBytes, '\0');
  while (true) {
    ATOLL_TRY(size_t count, reader.read(buffer));
    if (count == 0) return hash.finish();
    std::string_view part(buffer.data(), count);
    hash.update(part);
    if (manifest == nullptr) continue;
    if (manifest->size() + count > kMaxManifestBytes)
      return invalid("template.toml is larger than 256 KiB");
    *manifest += part;
  }
}

Result<Fd> make_nameless(const std::string& directory) {
  return open_file(directory, O_RDWR | O_TMPFILE, 0600);
}

Result<void> pack_file(int into, const Fd& file, const std::string& name) {
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return Error::system("stat " + name);
  if (!S_ISREG(facts.st_mode)) return invalid(name + " is not a plain file");
  TarEntry entry;
  entry.path = name;
  entry.mode = (facts.st_mode & 0100) != 0 ? 0755 : 0644;
  entry.size = static_cast<uint64_t>(facts.st_size);
  if (entry.size > kMaxFolderBytes) return invalid(name + " is larger than 4 GiB");
  ATOLL_TRY_VOID(write_all(into, tar_header(entry)));
  std::vector<char> buffer(kStepBytes);
  for (uint64_t done = 0; done < entry.size;) {
    ssize_t count =
        pread(file.get(), buffer.data(), std::min<uint64_t>(buffer.size(), entry.size - done),
              static_cast<off_t>(done));
    if (count <= 0) return Error::system("read " + name);
    ATOLL_TRY_VOID(write_all(into, {buffer.data(), static_cast<size_t>(count)}));
    done += static_cast<uint64_t>(count);
  }
  return write_all(into, tar_padding(entry.size));
}

}  // namespace

Result<TemplatePack> open_template_pack(Fd file) {
  ATOLL_TRY(TarReader reader, TarReader::open(file.get()));
  std::vector<Digest> entries;
  std::string manifest;
  bool found = false;
  while (true) {
    ATOLL_TRY(std::optional<TarEntry> entry, reader.next());
    if (!entry) break;
    bool is_manifest = plain(entry->path) == kManifest && entry->type == TarEntry::Type::kFile;
    if (is_manifest && found) return invalid("the pack has two files template.toml");
    found |= is_manifest;
    if (entry->type == TarEntry::Type::kDirectory) continue;
    ATOLL_TRY(Digest digest, hash_entry(reader, *entry, is_manifest ? &manifest : nullptr));
    entries.push_back(digest);
  }
  if (!found) return invalid("the pack has no template.toml at its top");
  auto parsed = parse_template_manifest(manifest, kManifest);
  if (!parsed) return std::move(parsed).error().with_reason("invalid_template");
  if (lseek(file.get(), 0, SEEK_SET) != 0) return Error::system("lseek");
  ATOLL_TRY(Digest digest, sha256_of_fd(file.get()));
  // In an order of their own: who packs a folder takes its files as they come.
  std::sort(entries.begin(), entries.end());
  Sha256 hash;
  hash.update(kPipeline);
  for (const Digest& entry : entries) hash.update(entry.string());
  Digest inputs = hash.finish();
  return TemplatePack{.file = std::move(file),
                      .digest = digest,
                      .inputs = inputs,
                      .manifest_text = std::move(manifest),
                      .manifest = std::move(*parsed)};
}

Result<Fd> pack_manifest(std::string_view text, const std::string& directory,
                         const std::vector<PackedFile>& files) {
  ATOLL_TRY(Fd file, make_nameless(directory));
  TarEntry entry;
  entry.path = kManifest;
  entry.mode = 0644;
  entry.size = text.size();
  ATOLL_TRY_VOID(write_all(file.get(), tar_header(entry)));
  ATOLL_TRY_VOID(write_all(file.get(), text));
  ATOLL_TRY_VOID(write_all(file.get(), tar_padding(text.size())));
  for (const PackedFile& one : files) ATOLL_TRY_VOID(pack_file(file.get(), one.file, one.path));
  ATOLL_TRY_VOID(write_all(file.get(), tar_end()));
  return file;
}

Result<Fd> pack_folder(const std::string& folder, const std::string& directory) {
  ATOLL_TRY(Fd file, make_nameless(directory));
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error))
    if (!entry.is_directory()) paths.push_back(entry.path());
  if (error) return Error::from_errno("read " + folder, error.value());
  // The same folder gives the same pack.
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    ATOLL_TRY(Fd packed, open_file(path.string(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    ATOLL_TRY_VOID(pack_file(file.get(), packed, path.lexically_relative(folder).string()));
  }
  ATOLL_TRY_VOID(write_all(file.get(), tar_end()));
  return file;
}

Result<TemplatePacks> TemplatePacks::open(const std::string& directory) {
  ATOLL_TRY_VOID(make_directory(directory, 0700));
  return TemplatePacks(directory);
}

Result<void> TemplatePacks::keep(const TemplatePack& pack) {
  std::string path = path_ + "/" + pack.digest.string();
  if (access(path.c_str(), F_OK) == 0) return {};
  if (fsync(pack.file.get()) != 0) return Error::system("fsync a pack");
  // A file without a name gets one, once it is whole; procfs is how linkat(2) names it.
  std::string source = "/proc/self/fd/" + std::to_string(pack.file.get());
  if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0 &&
      errno != EEXIST)
    return Error::system("keep a pack");
  return sync_directory_of(path);
}

Result<Fd> TemplatePacks::find(const Digest& digest) const {
  return open_file(path_ + "/" + digest.string(), O_RDONLY | O_NOFOLLOW);
}

Result<void> TemplatePacks::keep_only(const std::vector<Digest>& wanted, Unlisted fate) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    auto digest = Digest::parse(entry.path().filename().string());
    if (digest && std::find(wanted.begin(), wanted.end(), *digest) != wanted.end()) continue;
    if (fate == Unlisted::kSetAside) {
      ATOLL_TRY_VOID(set_aside(path_, entry.path().filename().string()));
    } else if (unlink(entry.path().c_str()) != 0) {
      return Error::system("remove a pack");
    }
  }
  if (error) return Error::from_errno("read " + path_, error.value());
  return {};
}

}  // namespace atl::store
