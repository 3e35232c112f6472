#include "store/blobs.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace atl::store {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUnfinished = ".partial";
constexpr size_t kShardLetters = 2;

std::string shard_of(const Digest& name) { return name.string().substr(0, kShardLetters); }

// What a process that was killed has left.
Result<void> remove_drafts(const std::string& directory) {
  std::vector<fs::path> drafts;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error), end;
  for (; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == kUnfinished) drafts.push_back(entry->path());
  for (const fs::path& draft : drafts)
    if (!error) fs::remove(draft, error);
  if (error) return Error::from_errno("clear " + directory, error.value());
  return {};
}

Error full() {
  return Error(Code::kExhausted, "the disk of the host has no room for it", ENOSPC)
      .with_reason("disk_full");
}

}  // namespace

Result<std::unique_ptr<DirectoryBlobs>> DirectoryBlobs::open(const std::string& directory,
                                                             uint64_t floor_bytes) {
  ATOLL_TRY_VOID(make_directory(directory, 0700));
  ATOLL_TRY(Fd opened, open_file(directory, O_RDONLY | O_DIRECTORY));
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (char high : kDigits)
    for (char low : kDigits) ATOLL_TRY_VOID(make_directory(directory + "/" + high + low, 0700));
  ATOLL_TRY_VOID(remove_drafts(directory));
  return std::unique_ptr<DirectoryBlobs>(
      new DirectoryBlobs(directory, std::move(opened), floor_bytes));
}

Result<Blobs::Put> DirectoryBlobs::put(const Digest& name, std::string_view bytes) {
  std::string path = shard_of(name) + "/" + name.string();
  if (faccessat(directory_.get(), path.c_str(), F_OK, 0) == 0) return Put::kThere;
  struct statvfs space;
  if (fstatvfs(directory_.get(), &space) != 0) return Error::system("look for free space");
  if (uint64_t{space.f_bavail} * space.f_frsize < floor_bytes_ + bytes.size()) return full();
  // A name of its own: another thread may be putting the same.
  std::string draft = shard_of(name) + "/" + random_text(16) + std::string(kUnfinished);
  ATOLL_TRY(Fd file, open_at(directory_.get(), draft, O_WRONLY | O_CREAT | O_EXCL, 0600));
  auto written = write_all(file.get(), bytes);
  if (written && renameat(directory_.get(), draft.c_str(), directory_.get(), path.c_str()) == 0)
    return Put::kNew;
  Error failure = written ? Error::system("keep a blob") : std::move(written).error();
  unlinkat(directory_.get(), draft.c_str(), 0);
  if (failure.code() == Code::kExhausted) return full();
  return failure;
}

Result<Fd> DirectoryBlobs::open(const Digest& name) const {
  return open_at(directory_.get(), shard_of(name) + "/" + name.string(), O_RDONLY | O_NOFOLLOW);
}

Result<void> DirectoryBlobs::remove(const Digest& name) {
  std::string path = shard_of(name) + "/" + name.string();
  if (unlinkat(directory_.get(), path.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove a blob");
  return {};
}

// Beside all blobs, not beside those of its shard.
Result<void> DirectoryBlobs::set_aside(const Digest& name) {
  return store::set_aside(path_, shard_of(name) + "/" + name.string());
}

Result<std::vector<Digest>> DirectoryBlobs::list() const {
  std::vector<Digest> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(path_, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (auto name = Digest::parse(entry->path().filename().string())) names.push_back(*name);
  }
  if (error) return Error::from_errno("list " + path_, error.value());
  return names;
}

Result<void> DirectoryBlobs::sync() {
  if (syncfs(directory_.get()) != 0) return Error::system("sync the blobs");
  return {};
}

BlobKeeper::Hold::~Hold() {
  std::lock_guard<std::mutex> lock(keeper_.mutex_);
  for (const Digest& name : names_) {
    auto held = keeper_.held_.find(name);
    if (--held->second == 0) keeper_.held_.erase(held);
    if (keeper_.under_way_) keeper_.let_go_.insert(name);
  }
}

void BlobKeeper::Hold::add(const Digest& name) {
  std::lock_guard<std::mutex> lock(keeper_.mutex_);
  if (names_.insert(name).second) ++keeper_.held_[name];
}

Result<Blobs::Put> BlobKeeper::Hold::put(const Digest& name, std::string_view bytes) {
  if (claim_) ATOLL_TRY_VOID(claim_->add(name, bytes.size()));
  add(name);  // from now on it is not removed, so what is found is there to stay
  return keeper_.blobs_.put(name, bytes);
}

BlobKeeper::Collection::Collection(BlobKeeper& keeper) : keeper_(keeper) {
  std::lock_guard<std::mutex> lock(keeper.mutex_);
  keeper.under_way_ = true;
}

BlobKeeper::Collection::~Collection() {
  std::lock_guard<std::mutex> lock(keeper_.mutex_);
  keeper_.under_way_ = false;
  keeper_.let_go_.clear();
}

Result<size_t> BlobKeeper::Collection::run(const std::set<Digest>& named, Unlisted fate) {
  ATOLL_TRY(std::vector<Digest> names, keeper_.blobs_.list());
  size_t removed = 0;
  for (const Digest& name : names) {
    if (named.contains(name)) continue;
    std::lock_guard<std::mutex> lock(keeper_.mutex_);
    if (keeper_.held_.contains(name) || keeper_.let_go_.contains(name)) continue;
    bool keeps = fate == Unlisted::kSetAside;
    ATOLL_TRY_VOID(keeps ? keeper_.blobs_.set_aside(name) : keeper_.blobs_.remove(name));
    ++removed;
  }
  return removed;
}

}  // namespace atl::store
