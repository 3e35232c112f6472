#include "agent/file_pack.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "agent/file_entry.h"
#include "agent/file_list.h"
#include "agent/file_path.h"
#include "agent/file_read.h"
#include "agent/file_unpack.h"
#include "agent/file_walk.h"
#include "base/glob.h"

namespace atl::agent {
namespace {

// Beyond this many, files with several names are packed once for each of them.
constexpr size_t kMaxHardLinks = 100'000;
constexpr size_t kMaxPicked = 1'000'000;

// kExact: with attributes and without what is different each time, and all of it or an error.
enum class Fidelity : uint8_t { kPlain, kExact };

class Packing {
 public:
  explicit Packing(FileWire& wire, Fidelity fidelity = Fidelity::kPlain)
      : wire_(wire), fidelity_(fidelity) {}

  // A name in a directory, not followed, packed as `path`.
  Result<void> add(int directory, const std::string& name, const std::string& path);

 private:
  Result<void> add_file(int directory, const std::string& name, const std::string& path);
  Result<void> make_exact(int fd, FileEntry& entry);

  FileWire& wire_;
  Fidelity fidelity_;
  std::map<std::pair<dev_t, ino_t>, std::string> linked_;  // the first path of each
};

Result<void> Packing::add(int directory, const std::string& name, const std::string& path) {
  if (path.size() > kMaxPathBytes) return file_error(ENAMETOOLONG, "pack", path);
  auto entry = read_entry(directory, name, path);
  bool exact = fidelity_ == Fidelity::kExact;
  if (!entry && entry.error().system_errno() == ENOENT && !exact) return {};  // gone meanwhile
  if (!entry) return std::move(entry).error();
  if (entry->type == EntryType::kOther) return {};
  if (entry->type == EntryType::kFile) return add_file(directory, name, path);
  entry->size = 0;
  if (exact) {
    Fd self = open_beneath(directory, name, O_PATH | O_NOFOLLOW);
    if (!self) return file_error("open", path);
    ATOLL_TRY_VOID(make_exact(self.get(), *entry));
  }
  return wire_.send(encode_record(*entry));
}

Result<void> Packing::make_exact(int fd, FileEntry& entry) {
  entry.inode = 0;
  if (entry.type == EntryType::kSymlink) return {};
  return read_attributes(fd, entry);
}

Result<void> Packing::add_file(int directory, const std::string& name, const std::string& path) {
  auto file = open_regular(directory, name, O_NOFOLLOW);
  if (!file) {
    int failure = file.error().system_errno();
    // It has become something else, or gone.
    if (failure == ENOENT || failure == ENXIO || failure == EISDIR || failure == ELOOP) return {};
    return file_error(failure, file.error().message(), path);
  }
  struct stat status;
  if (fstat(file->get(), &status) != 0) return file_error("stat", path);
  FileEntry entry = describe(status, path);
  if (fidelity_ == Fidelity::kExact) ATOLL_TRY_VOID(make_exact(file->get(), entry));
  if (status.st_nlink > 1 && linked_.size() < kMaxHardLinks) {
    auto [first, is_new] = linked_.try_emplace({status.st_dev, status.st_ino}, path);
    if (!is_new) {
      entry.hard_link = first->second;
      entry.size = 0;
    }
  }
  ATOLL_TRY_VOID(wire_.send(encode_record(entry)));
  auto sent = send_range(file->get(), 0, entry.size, wire_);
  if (!sent) return file_error(sent.error().system_errno(), sent.error().message(), path);
  return {};
}

// How deep what fits the glob can lie; 0: anywhere.
uint32_t depth_of(const std::string& glob) {
  if (glob.find("**") != glob.npos) return 0;
  return 1 + static_cast<uint32_t>(std::count(glob.begin(), glob.end(), '/'));
}

}  // namespace

Result<void> pack_tree(const FileRequest& request, FileWire& wire) {
  Packing packing(wire);
  auto root = open_directory(request.path);
  if (!root && root.error().system_errno() == ENOTDIR) {
    ATOLL_TRY(Place place, find_place(request.path));
    return packing.add(place.directory.get(), place.name, place.name);
  }
  if (!root) return std::move(root).error();
  std::optional<Glob> wanted;
  WalkOptions options;
  if (!request.target.empty()) {
    ATOLL_TRY(wanted, Glob::parse(request.target));
    options.depth = depth_of(request.target);
  }
  options.unreadable = WalkOptions::Unreadable::kFail;
  FileWalk walk(std::move(*root), std::move(options));
  while (true) {
    ATOLL_TRY(auto walked, walk.next());
    if (!walked) return {};
    if (wanted && !wanted->matches(walked->path)) continue;
    ATOLL_TRY_VOID(packing.add(walked->directory, walked->name, walked->path));
  }
}

Result<void> pick_files(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Fd root, open_directory(request.path));
  std::vector<std::string> names;
  while (true) {
    ATOLL_TRY(FileRecord record, wire.receive());
    if (record.type == RecordType::kDone) break;
    if (record.type != RecordType::kEntry) return malformed("record in a");
    ATOLL_TRY(FileEntry entry, decode_entry(record.payload));
    auto path = plain_path(entry.path);
    if (!path || path->empty() || names.size() == kMaxPicked)
      return file_error(EINVAL, "pick", entry.path);
    names.push_back(std::move(*path));
  }
  Packing packing(wire, Fidelity::kExact);
  Fd directory;
  std::string parent;  // of `directory`
  for (const std::string& path : names) {
    size_t slash = path.rfind('/');
    std::string above = slash == path.npos ? "." : path.substr(0, slash);
    if (!directory || above != parent) {
      directory = open_beneath(root.get(), above, O_PATH | O_DIRECTORY);
      if (!directory) return file_error("open", path);
      parent = above;
    }
    ATOLL_TRY_VOID(packing.add(directory.get(), path.substr(slash + 1), path));
  }
  return {};
}

}  // namespace atl::agent
