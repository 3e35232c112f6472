#include "cli/host.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "cli/state_directory.h"
#include "linux/pidfd.h"

namespace atl::cli {
namespace {

constexpr std::chrono::milliseconds kStopGrace{10'000};
constexpr std::chrono::milliseconds kRemovalTime{60'000};

}  // namespace

Result<std::string> find_binaries() {
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error::from_errno("read /proc/self/exe", error.value());
  return self.parent_path().string();
}

Result<std::optional<linux::LockHolder>> Host::supervisor() const {
  return linux::find_lock_holder(places_.supervisor_lock(), 0);
}

Result<std::optional<linux::LockHolder>> Host::daemon() const {
  return linux::find_lock_holder(places_.daemon_lock(), daemon_.uid);
}

Result<std::optional<linux::LockHolder>> Host::warden() const {
  return linux::find_lock_holder(places_.warden_lock(), 0);
}

Result<std::optional<linux::LockHolder>> Host::builder() const {
  return linux::find_lock_holder(builder_lock(places_), 0);
}

Result<std::optional<linux::LockHolder>> Host::egress() const {
  ATOLL_TRY(Identity identity, find_egress_identity());
  return linux::find_lock_holder(egress_lock(places_), identity.uid);
}

Result<std::vector<std::string>> Host::end_processes() const {
  std::vector<std::string> ended;
  auto end = [&](Result<std::optional<linux::LockHolder>> holder,
                 const char* name) -> Result<void> {
    if (!holder) return std::move(holder).error();
    if (!*holder) return {};
    ATOLL_TRY([[maybe_unused]] Ended how, end_process((*holder)->pidfd.get(), kStopGrace));
    ended.emplace_back(name);
    return {};
  };
  ATOLL_TRY_VOID(end(daemon(), "atolld"));
  ATOLL_TRY_VOID(end(egress(), "atoll-egress"));
  ATOLL_TRY_VOID(end(builder(), "atoll-builder"));
  ATOLL_TRY_VOID(end(warden(), "atoll-warden"));
  return ended;
}

Result<void> Host::remove_isolates() const {
  ATOLL_TRY(Fd program, open_file(binaries_ + "/atoll-warden", O_PATH));
  ATOLL_TRY(StartedProcess removal,
            start_program({.program = program.get(),
                           .arguments = {"atoll-warden", "--remove-all", "--state-dir",
                                         places_.state, "--run-dir", places_.run},
                           .identity = std::nullopt}));
  ATOLL_TRY(bool ended, wait_for_end(removal.pidfd.get(), kRemovalTime));
  if (!ended) ATOLL_TRY_VOID(linux::send_signal(removal.pidfd.get(), SIGKILL));
  ATOLL_TRY(int status, linux::wait_for_exit(removal.pidfd.get()));
  if (!ended) return Error(Code::kTimeout, "atoll-warden --remove-all did not end in a minute");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error(Code::kSystem, "atoll-warden --remove-all failed");
  return {};
}

Result<bool> Host::remove_remains() const {
  if (access(places_.run.c_str(), F_OK) != 0) return false;
  ATOLL_TRY_VOID(remove_isolates());
  ATOLL_TRY_VOID(remove_tree(places_.run));
  return true;
}

}  // namespace atl::cli
