#include "builder/image_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "store/sha256.h"

namespace atl::builder {
namespace {

constexpr const char* kUnfinished = ".new-";
constexpr size_t kBlockBytes = 1 << 20;
constexpr uint64_t kMaxImageBytes = 64ull << 30;
constexpr off_t kSuperblock = 1024;
constexpr uint32_t kErofsMagic = 0xe0f5e1e2;

// Removes the copy unless it became the image.
class Unfinished {
 public:
  Unfinished(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
  ~Unfinished() { unlinkat(directory_, name_.c_str(), 0); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  int directory_;
  std::string name_;
};

Result<void> check_magic(int file) {
  uint32_t magic = 0;
  if (pread(file, &magic, sizeof magic, kSuperblock) != sizeof magic || magic != kErofsMagic)
    return Error(Code::kCorrupt, "mkfs.erofs made no image");
  return {};
}

Result<KeptImage> copy(int from, int to) {
  store::Sha256 hash;
  std::vector<char> block(kBlockBytes);
  uint64_t bytes = 0;
  while (true) {
    ssize_t count = pread(from, block.data(), block.size(), static_cast<off_t>(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read the image");
    if (count == 0) return KeptImage{.digest = hash.finish(), .bytes = bytes};
    std::string_view part(block.data(), static_cast<size_t>(count));
    bytes += part.size();
    if (bytes > kMaxImageBytes) return Error(Code::kInvalid, "the image is larger than 64 GiB");
    hash.update(part);
    ATOLL_TRY_VOID(write_all(to, part));
  }
}

}  // namespace

Result<KeptImage> keep_image(int images, int file) {
  std::string name = kUnfinished + random_text(16);
  ATOLL_TRY(Fd to, open_at(images, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  Unfinished unfinished(images, name);
  ATOLL_TRY(KeptImage image, copy(file, to.get()));
  ATOLL_TRY_VOID(check_magic(to.get()));
  if (fchmod(to.get(), 0644) != 0) return Error::system("chmod the image");
  if (fsync(to.get()) != 0) return Error::system("fsync the image");
  crash_point("image.copied");
  // In place of one of the same name: the bytes are the same, unless those on disk went bad.
  std::string target = image.digest.string() + ".erofs";
  if (renameat(images, name.c_str(), images, target.c_str()) != 0)
    return Error::system("rename the image");
  if (fsync(images) != 0) return Error::system("fsync the images");
  crash_point("image.kept");
  return image;
}

Result<void> remove_unfinished_images(int images) {
  ATOLL_TRY(Fd listed, open_at(images, ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listed.release()), closedir);
  if (!entries) return Error::system("read the images");
  while (const dirent* entry = readdir(entries.get()))
    if (std::string_view(entry->d_name).starts_with(kUnfinished) &&
        unlinkat(images, entry->d_name, 0) != 0)
      return Error::system("remove an unfinished image");
  return {};
}

}  // namespace atl::builder
