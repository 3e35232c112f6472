#include "cli/image_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include <openssl/evp.h>

#include "base/file.h"

namespace atl::cli {
namespace {

constexpr size_t kBlockBytes = 1024 * 1024;

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Removes the half-written copy unless it became the image.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Result<void> become(const std::string& target) {
    if (rename(path_.c_str(), target.c_str()) != 0) return Error::system("rename to " + target);
    path_.clear();
    return {};
  }

 private:
  std::string path_;
};

Result<bool> is_installed(const std::string& path, const Digest& digest) {
  auto fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!fd && fd.error().system_errno() == ENOENT) return false;
  if (!fd) return std::move(fd).error();
  struct stat status;
  if (fstat(fd->get(), &status) != 0) return Error::system("stat " + path);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 07777) != 0644)
    return false;
  ATOLL_TRY(Digest found, hash_file(fd->get(), -1));
  return found == digest;
}

}  // namespace

Result<Digest> hash_file(int fd, int copy) {
  std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1)
    return Error(Code::kSystem, "start sha256");
  std::vector<char> block(kBlockBytes);
  while (true) {
    ssize_t count = read(fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read image");
    if (count == 0) break;
    size_t size = static_cast<size_t>(count);
    if (EVP_DigestUpdate(context.get(), block.data(), size) != 1)
      return Error(Code::kSystem, "continue sha256");
    if (copy >= 0) ATOLL_TRY_VOID(write_all(copy, {block.data(), size}));
  }
  std::array<unsigned char, Digest::kBytes> bytes;
  if (EVP_DigestFinal_ex(context.get(), bytes.data(), nullptr) != 1)
    return Error(Code::kSystem, "finish sha256");
  return Digest::from_bytes(bytes);
}

Result<void> install_image(const std::string& source, const Digest& digest,
                           const std::string& directory) {
  std::string target = directory + "/" + digest.string() + ".erofs";
  ATOLL_TRY(bool installed, is_installed(target, digest));
  if (installed) return {};
  ATOLL_TRY(Fd from, open_file(source, O_RDONLY));
  std::string temporary = target + "." + random_text(8);
  ATOLL_TRY(Fd to, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TemporaryFile copy(temporary);
  ATOLL_TRY(Digest found, hash_file(from.get(), to.get()));
  if (found != digest)
    return Error(Code::kCorrupt, source + " has sha256 " + found.string() + ", expected " +
                                     digest.string() + ": build the template again");
  if (fchmod(to.get(), 0644) != 0) return Error::system("chmod " + temporary);
  if (fsync(to.get()) != 0) return Error::system("fsync " + temporary);
  return copy.become(target);
}

}  // namespace atl::cli
