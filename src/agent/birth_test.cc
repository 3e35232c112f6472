#include "agent/birth.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "linux/clone.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

// Taking a birth changes the whole process, so each case runs in one of its own.
template <typename Body>
bool holds_in_child(Body body) {
  auto child = linux::clone_process({});
  if (!child.ok()) return false;
  if (child->in_child()) _exit(body() ? 0 : 1);
  auto status = linux::wait_for_exit(child->pidfd.get());
  return status.ok() && *status == 0;
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }
bool is_close_on_exec(int fd) { return fcntl(fd, F_GETFD) == FD_CLOEXEC; }

void place(Fd fd, int number) {
  if (fd.get() != number) dup2(fd.get(), number);
  if (fd.get() == number) fd.release();
}

// Descriptors 3 to 10 as the warden gives them; `record` is what the birth memfd holds.
void give_birth(std::string_view record) {
  close_range(3, ~0u, 0);
  for (int number = kListenerFd; number <= kLastBirthFd; ++number)
    place(Fd(open("/dev/null", O_RDWR)), number);
  Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sa_family_t family = AF_UNIX;  // an address without a name: the kernel picks one
  bind(listener.get(), reinterpret_cast<sockaddr*>(&family), sizeof family);
  listen(listener.get(), 1);
  place(std::move(listener), kListenerFd);
  Fd file(memfd_create("birth", 0));
  (void)write_all(file.get(), record);
  place(std::move(file), kBirthFd);
}

std::string record_bytes(BirthRecord record) {
  return {reinterpret_cast<char*>(&record), sizeof record};
}

TEST(Birth, HardenedProcessIsNotDumpableAndLeaksNoDescriptor) {
  EXPECT_TRUE(holds_in_child([] {
    close(STDIN_FILENO);
    for (int fd : {3, 4, 5, 90}) dup2(STDERR_FILENO, fd);
    if (!harden_process(4).ok()) return false;
    bool kept = is_open(0) && is_open(1) && is_open(2);
    bool marked = is_close_on_exec(3) && is_close_on_exec(4);
    return kept && marked && !is_open(5) && !is_open(90) && prctl(PR_GET_DUMPABLE) == 0;
  }));
}

TEST(Birth, TakesWhatTheRecordSays) {
  for (uint8_t has_spawner : {0, 1}) {
    EXPECT_TRUE(holds_in_child([has_spawner] {
      BirthRecord record = {kBirthVersion, has_spawner, OnOom::kEndExec, 0, 0, {}, {}};
      record.nonce.fill(7);
      give_birth(record_bytes(record));
      auto birth = take_birth();
      if (!birth.ok() || birth->nonce[15] != 7) return false;
      return birth->spawner.valid() == (has_spawner == 1) && !is_open(kBirthFd) &&
             is_open(kSpawnerFd) == (has_spawner == 1);
    }));
  }
}

TEST(Birth, BadRecordIsRefused) {
  std::string good = record_bytes({kBirthVersion, 0, OnOom::kEndExec, 0, 0, {}, {}});
  std::string bad_records[] = {
      "",
      good.substr(1),
      good + '\0',
      record_bytes({kBirthVersion + 1, 0, OnOom::kEndExec, 0, 0, {}, {}}),
      record_bytes({kBirthVersion, 2, OnOom::kEndExec, 0, 0, {}, {}}),
      record_bytes({kBirthVersion, 0, OnOom::kEndExec, 0, 0, {1}, {}}),
      record_bytes({kBirthVersion, 0, OnOom::kEndExec, 0, 2, {}, {}}),
  };
  for (const std::string& record : bad_records) {
    EXPECT_TRUE(holds_in_child([&record] {
      give_birth(record);
      return !take_birth().ok();
    }));
  }
}

TEST(Birth, OnlyThePeakMayBeMissing) {
  for (int missing = kMemoryEventsFd; missing <= kOomNoticeFd; ++missing) {
    EXPECT_TRUE(holds_in_child([missing] {
      give_birth(record_bytes({kBirthVersion, 0, OnOom::kEndSandbox, 0, 0, {}, {}}));
      close(missing);
      auto birth = take_birth();
      if (missing != kMemoryPeakFd) return !birth.ok();
      return birth.ok() && !birth->memory_peak && birth->on_oom == OnOom::kEndSandbox;
    })) << missing;
  }
}

TEST(Birth, ListenerThatDoesNotListenIsRefused) {
  EXPECT_TRUE(holds_in_child([] {
    give_birth(record_bytes({kBirthVersion, 0, OnOom::kEndExec, 0, 0, {}, {}}));
    place(Fd(socket(AF_UNIX, SOCK_STREAM, 0)), kListenerFd);
    return !take_birth().ok();
  }));
}

}  // namespace
}  // namespace atl::agent
