#include "warden/pool_watch.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/log.h"
#include "warden/layer_pool.h"
#include "warden/removal.h"

namespace atl::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLookPause{1000};

// How a mount fails while isolates hold a file system that had an error. Anything else may pass.
bool is_held_broken(int mount_errno) {
  constexpr int kErrors[] = {EINVAL, EROFS, EBUSY, EIO, EUCLEAN};
  return std::find(std::begin(kErrors), std::end(kErrors), mount_errno) != std::end(kErrors);
}

Result<void> end_and_mount(Host& host) {
  ATOLL_TRY_VOID(end_all_isolates(host));
  ATOLL_TRY_VOID(unmount_pool(host));
  return mount_pool(host);
}

}  // namespace

void lose_pool(Host& host, const Error& why) {
  log_error("the layer pool is lost for now", {why});
  host.pool.reset();
  host.pool_errno = why.system_errno() == 0 ? EIO : why.system_errno();
}

int PoolWatch::ms_to_look() const {
  auto left = std::chrono::ceil<milliseconds>(next_look_ - steady_clock::now());
  return static_cast<int>(std::clamp(left, milliseconds(0), kLookPause).count());
}

bool PoolWatch::is_to_mount() {
  if (steady_clock::now() < next_look_) return false;
  next_look_ = steady_clock::now() + kLookPause;
  if (child_ != 0) return false;
  auto there = host_.pool ? check_pool(host_) : Result<void>();
  if (!there) lose_pool(host_, there.error());
  return !host_.pool;
}

void PoolWatch::begin(pid_t child) { child_ = std::max(child, 0); }

int PoolWatch::mount_anew() {
  bool held = is_held_broken(host_.pool_errno);
  if (held) log_warning("ending all isolates, whose file system is broken");
  Result<void> mounted = held ? end_and_mount(host_) : mount_pool(host_);
  if (mounted) mounted = remove_strays(host_);
  if (mounted) return 0;
  log_error("the layer pool cannot be mounted", {mounted.error()});
  int why = mounted.error().system_errno();
  return why > 0 && why < 256 ? why : EIO;
}

bool PoolWatch::ended(pid_t child, int status) {
  if (child != child_ || child == 0) return false;
  child_ = 0;
  next_look_ = steady_clock::now() + kLookPause;
  if (!WIFEXITED(status)) return true;
  if (WEXITSTATUS(status) != 0) {
    host_.pool_errno = WEXITSTATUS(status);
    return true;
  }
  auto opened = open_pool(host_);
  if (opened)
    log_info("the layer pool is mounted anew");
  else
    lose_pool(host_, opened.error());
  return true;
}

void PoolWatch::stop() {
  if (child_ != 0) (void)kill(child_, SIGKILL);
}

}  // namespace atl::warden
