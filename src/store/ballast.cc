#include "store/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"

namespace atl::store {
namespace {

// Made of what is left, it would be the end of whoever else needs a little.
constexpr uint64_t kSpareBytes = 4 * kBallastBytes;

}  // namespace

Result<Ballast> Ballast::open(const std::string& path) {
  ATOLL_TRY(Fd file, open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + path);
  Ballast ballast(std::move(file), path);
  ballast.bytes_ = static_cast<uint64_t>(status.st_size);
  ballast.restore();
  return ballast;
}

bool Ballast::give_up() {
  if (bytes_ == 0) return false;
  bytes_ -= std::min(bytes_, kBallastPieceBytes);
  // Blocks are free for others when that is on disk.
  if (ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0 || fsync(file_.get()) != 0) {
    log_error("ballast cannot be given up", {Error::system("truncate " + path_)});
    return false;
  }
  log_warning("the disk is full; gave up ballast", {{"left_bytes", bytes_}});
  return true;
}

void Ballast::restore() {
  if (bytes_ >= kBallastBytes) return;
  struct statvfs space;
  if (fstatvfs(file_.get(), &space) != 0) return;
  if (space.f_bavail * space.f_frsize < kSpareBytes) return;
  auto begin = static_cast<off_t>(bytes_);
  if (fallocate(file_.get(), 0, begin, static_cast<off_t>(kBallastBytes) - begin) == 0) {
    bytes_ = kBallastBytes;
    return;
  }
  log_warning("no ballast is kept", {Error::system("allocate " + path_)});
}

}  // namespace atl::store
