#include "agent/layer_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/clone.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

constexpr size_t kTriedBytes = 64 * 1024;
constexpr int kFullCode = 1;
constexpr auto kLongest = std::chrono::seconds(30);
constexpr auto kRetry = std::chrono::milliseconds(100);
constexpr const char* kFallbackName = ".atoll-layer-probe";

bool means_full(int system_errno) { return system_errno == EDQUOT || system_errno == ENOSPC; }

// Overlays have nameless files since Linux 6.3.
Fd open_nameless(int directory) {
  Fd file(openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  file = Fd(openat(directory, kFallbackName, flags, 0600));
  int failure = errno;
  // Also one that a killed probe left.
  unlinkat(directory, kFallbackName, 0);
  errno = failure;
  return file;
}

}  // namespace

bool is_full(int directory) {
  Fd file = open_nameless(directory);
  if (!file) return means_full(errno);
  // Written, not allocated: what never reaches the disk is given back when the file is closed,
  // while an allocation counts until the next commit.
  static const char kBytes[kTriedBytes] = {1};
  size_t done = 0;
  while (done < kTriedBytes) {
    ssize_t count = write(file.get(), kBytes + done, kTriedBytes - done);
    if (count <= 0) return count < 0 && means_full(errno);
    done += static_cast<size_t>(count);
  }
  return false;
}

void LayerProbe::ask(uint32_t exec) {
  waiting_.push_back(exec);
  if (!pid_) begin();
}

void LayerProbe::begin() {
  auto now = std::chrono::steady_clock::now();
  auto child = linux::clone_process({});
  if (!child) {
    deadline_ = now + kRetry;
    return;
  }
  if (child->in_child()) _exit(is_full(directory_.get()) ? kFullCode : 0);
  pid_ = child->pid;
  pidfd_ = std::move(child->pidfd);
  deadline_ = now + kLongest;
  asking_ = std::move(waiting_);
  waiting_.clear();
}

LayerProbe::Answer LayerProbe::ended(int wait_status) {
  bool full = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kFullCode;
  Answer answer = {full, std::move(asking_)};
  asking_.clear();
  pid_.reset();
  pidfd_.reset();
  deadline_.reset();
  if (!waiting_.empty()) begin();
  return answer;
}

void LayerProbe::check_deadline(SteadyTime now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  if (!pid_) return begin();
  // A failure means that it has ended meanwhile.
  (void)linux::send_signal(pidfd_.get(), SIGKILL);
}

}  // namespace atl::agent
