#include "store/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/file.h"

namespace atl::store {
namespace {

constexpr std::chrono::hours kKept{24};

struct Kept {
  std::string path;
  std::string tenant;
  uint64_t bytes = 0;
  int64_t made_at_ns = 0;
};

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

int64_t nanoseconds_of(const timespec& time) {
  return time.tv_sec * kNanosecondsPerSecond + time.tv_nsec;
}

Result<std::vector<Kept>> list(const std::string& directory) {
  std::vector<Kept> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    struct stat facts;
    std::string name = entry.path().filename().string();
    if (stat(entry.path().c_str(), &facts) != 0) continue;
    all.push_back({.path = entry.path().string(),
                   .tenant = name.substr(0, name.find('-')),
                   .bytes = static_cast<uint64_t>(facts.st_size),
                   .made_at_ns = nanoseconds_of(facts.st_mtim)});
  }
  if (error) return Error::from_errno("read " + directory, error.value());
  std::sort(all.begin(), all.end(),
            [](const Kept& a, const Kept& b) { return a.made_at_ns > b.made_at_ns; });
  return all;
}

// Gives the file a time after those of all others.
Result<void> make_newest(const std::string& directory, const Fd& file) {
  ATOLL_TRY(std::vector<Kept> all, list(directory));
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return Error::system("stat an upload");
  if (all.empty() || nanoseconds_of(facts.st_mtim) > all.front().made_at_ns) return {};
  int64_t next_ns = all.front().made_at_ns + 1;
  timespec times[2] = {
      {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      {.tv_sec = next_ns / kNanosecondsPerSecond, .tv_nsec = next_ns % kNanosecondsPerSecond}};
  if (futimens(file.get(), times) != 0) return Error::system("set the time of an upload");
  return {};
}

}  // namespace

Result<Uploads> Uploads::open(const std::string& directory) {
  ATOLL_TRY_VOID(make_directory(directory, 0700));
  return Uploads(directory);
}

std::string Uploads::path_of(TenantId tenant, const Digest& name) const {
  return path_ + "/" + std::to_string(tenant.number()) + "-" + name.string();
}

Result<void> Uploads::keep(TenantId tenant, const Digest& name, const Fd& file) const {
  std::string path = path_of(tenant, name);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Error::system("replace an upload");
  ATOLL_TRY_VOID(make_newest(path_, file));
  // A file without a name gets one, once it is whole; procfs is how linkat(2) names it.
  std::string source = "/proc/self/fd/" + std::to_string(file.get());
  if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return Error::system("keep an upload");
  return {};
}

Result<Fd> Uploads::find(TenantId tenant, const Digest& name) const {
  return open_file(path_of(tenant, name), O_RDONLY | O_NOFOLLOW);
}

Result<void> Uploads::sweep(WallTime now) const {
  ATOLL_TRY(std::vector<Kept> all, list(path_));
  int64_t oldest_ns = to_milliseconds(now - kKept) * 1'000'000;
  std::map<std::string, uint64_t> of_tenant;
  uint64_t of_host = 0;
  for (const Kept& one : all) {
    uint64_t& bytes = of_tenant[one.tenant];
    bool fits = one.made_at_ns >= oldest_ns && bytes + one.bytes <= kMaxUploadsOfTenant &&
                of_host + one.bytes <= kMaxUploadsOfHost;
    if (fits) {
      bytes += one.bytes;
      of_host += one.bytes;
      continue;
    }
    if (unlink(one.path.c_str()) != 0) return Error::system("remove an upload");
  }
  return {};
}

}  // namespace atl::store
