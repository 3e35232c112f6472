#include "linux/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <vector>

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr int kFirstLifted = 16;

Result<void> put_at(int fd, int number) {
  if (dup2(fd, number) != number) return Error::system("place a descriptor");
  return {};
}

}  // namespace

Result<int> lift_descriptor(int fd) {
  int lifted = fcntl(fd, F_DUPFD_CLOEXEC, kFirstLifted);
  if (lifted < 0) return Error::system("duplicate a descriptor");
  return lifted;
}

Result<void> place_descriptors(std::span<const Placement> placements, int last) {
  ATOLL_CHECK(last < kFirstLifted);
  // First out of the way, because one's number can be another's goal.
  std::vector<Placement> lifted(placements.begin(), placements.end());
  for (Placement& placement : lifted) {
    if (placement.fd < 0) continue;
    ATOLL_TRY(placement.fd, lift_descriptor(placement.fd));
  }
  if (close_range(STDERR_FILENO + 1, static_cast<unsigned>(last), 0) != 0)
    return Error::system("close_range");
  for (const Placement& placement : lifted)
    if (placement.fd >= 0) ATOLL_TRY_VOID(put_at(placement.fd, placement.number));
  ATOLL_TRY(Fd null, open_file("/dev/null", O_RDWR));
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ATOLL_TRY_VOID(put_at(null.get(), number));
  if (close_range(static_cast<unsigned>(last) + 1, kHighestDescriptor, CLOSE_RANGE_CLOEXEC) != 0)
    return Error::system("close_range");
  return {};
}

}  // namespace atl::linux
