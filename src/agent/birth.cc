#include "agent/birth.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>

#include "agent/rest_note.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "linux/descriptors.h"

namespace atl::agent {
namespace {

Result<void> open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is `fd`, because all below are open.
    if (open("/dev/null", O_RDWR) != fd) return Error::system("open standard stream");
  }
  return {};
}

Result<BirthRecord> read_birth_record() {
  BirthRecord record;
  // One byte more than fits, so that a longer record is noticed.
  char bytes[sizeof record + 1];
  ssize_t count = pread(kBirthFd, bytes, sizeof bytes, 0);
  if (count < 0) return Error::system("read birth record");
  if (static_cast<size_t>(count) != sizeof record)
    return Error(Code::kCorrupt, "birth record has the wrong length");
  std::memcpy(&record, bytes, sizeof record);
  if (record.version != kBirthVersion)
    return Error(Code::kUnsupported, "birth record has an unknown version");
  bool known = record.has_spawner <= 1 && record.on_oom <= OnOom::kEndSandbox &&
               record.has_probe <= 1 && record.has_sudo <= 1 && record.reserved[0] == 0 &&
               record.reserved[1] == 0;
  if (!known || record.crash_at.back() != '\0')
    return Error(Code::kCorrupt, "birth record has an unknown field");
  arm_crash_point(record.crash_at.data());
  return record;
}

bool is_open(int number) { return fcntl(number, F_GETFD) >= 0; }

Result<Fd> take_fd(int number) {
  if (!is_open(number))
    return Error::from_errno("descriptor " + std::to_string(number) + " of the birth", EBADF);
  return Fd(number);
}

Result<void> check_listener(int fd) {
  int listening = 0;
  socklen_t length = sizeof listening;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0)
    return Error::system("examine listener");
  if (listening != 1) return Error(Code::kInvalid, "listener does not listen");
  // Otherwise a client that gave up between poll and accept would block the agent.
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Error::system("make listener non-blocking");
  return {};
}

Fd take_if(bool ours, int number) {
  Fd fd(number);
  if (!ours) fd.reset();
  return fd;
}

}  // namespace

Result<void> harden_process(int last_fd) {
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Error::system("make process not dumpable");
  ATOLL_TRY_VOID(open_standard_streams());
  auto last = static_cast<unsigned>(last_fd);
  if (close_range(3, last, CLOSE_RANGE_CLOEXEC) != 0) return Error::system("set close-on-exec");
  if (close_range(last + 1, linux::kHighestDescriptor, 0) != 0)
    return Error::system("close inherited descriptors");
  return {};
}

Result<Birth> take_birth() {
  ATOLL_TRY_VOID(harden_process(kRestFd));
  ATOLL_TRY(BirthRecord record, read_birth_record());
  close(kBirthFd);
  ATOLL_TRY_VOID(check_listener(kListenerFd));
  Birth birth;
  birth.listener = Fd(kListenerFd);
  birth.cgroup = Fd(kCgroupFd);
  birth.nonce = record.nonce;
  birth.guest = record.guest;
  birth.spawner = take_if(record.has_spawner == 1, kSpawnerFd);
  birth.probe = take_if(record.has_probe == 1, kProbeFd);
  birth.on_oom = record.on_oom;
  ATOLL_TRY(birth.memory_events, take_fd(kMemoryEventsFd));
  ATOLL_TRY(birth.pids_events, take_fd(kPidsEventsFd));
  ATOLL_TRY(birth.oom_notice, take_fd(kOomNoticeFd));
  if (is_open(kMemoryPeakFd)) birth.memory_peak = Fd(kMemoryPeakFd);
  if (is_open(kRestFd)) birth.rest = Fd(kRestFd);
  birth.sudo = take_if(record.has_sudo == 1, kSudoFd);
  if (birth.sudo) ATOLL_TRY_VOID(check_listener(kSudoFd));
  return birth;
}

Result<Fd> open_null_device() {
  ATOLL_TRY(Fd fd, open_file("/dev/null", O_RDWR));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return Error::system("stat /dev/null");
  if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(1, 3))
    return Error(Code::kInvalid, "/dev/null is not the null device");
  return fd;
}

}  // namespace atl::agent
