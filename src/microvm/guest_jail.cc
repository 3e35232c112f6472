#include "microvm/guest_jail.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "agent/rest_note.h"
#include "base/file.h"
#include "linux/confinement.h"
#include "linux/descriptors.h"
#include "linux/mounts.h"
#include "linux/resource_limits.h"
#include "linux/sandbox_root.h"
#include "linux/sealed_memory.h"

namespace atl::microvm {
namespace {

constexpr uint64_t kNoSuidNoDev = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr rlim_t kAgentOpenFiles = 4096;
constexpr const char* kMasks = "/masks";
constexpr std::string_view kHostName = "atoll";

struct Room {
  Fd root, run_atoll;
};

Result<Room> build_root() {
  Room room;
  ATOLL_TRY(Fd masks, open_file(kMasks, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd devices, linux::clone_mount(AT_FDCWD, "/devices"));
  ATOLL_TRY(Fd tools, linux::clone_mount(AT_FDCWD, "/tools"));
  ATOLL_TRY(room.root, linux::make_mount("overlay",
                                         {{"lowerdir", "/image:/masks/links"},
                                          {"upperdir", "/layer/upper"},
                                          {"workdir", "/layer/work"},
                                          {"volatile", ""}},
                                         kNoSuidNoDev));
  ATOLL_TRY_VOID(make_directory("/root", 0755));
  ATOLL_TRY_VOID(linux::attach_mount_at(room.root.get(), AT_FDCWD, "/root"));
  if (access("/toolbox", F_OK) == 0) {
    ATOLL_TRY(Fd toolbox, linux::clone_mount(AT_FDCWD, "/toolbox"));
    ATOLL_TRY_VOID(linux::attach_toolbox(room.root.get(), toolbox.get()));
  }
  ATOLL_TRY_VOID(linux::attach_devices(room.root.get(), devices.get()));
  ATOLL_TRY(Fd proc, linux::attach_proc(room.root.get()));
  ATOLL_TRY(room.run_atoll, linux::attach_run(room.root.get(), tools.get()));
  linux::AttachedMasks attached = {.mount = masks.get(), .path = kMasks, .boot_id = ""};
  ATOLL_TRY_VOID(linux::mask_kernel_files(room.root.get(), proc.get(), attached));
  ATOLL_TRY_VOID(linux::attach_resolver(room.root.get(), attached));
  return room;
}

Result<void> execute_agent(const GuestPlan& plan, int sudo) {
  std::string_view bytes(reinterpret_cast<const char*>(&plan.birth), sizeof plan.birth);
  ATOLL_TRY(Fd birth, linux::make_sealed_memory("atoll-birth", bytes));
  std::vector<linux::Placement> places = {{plan.listener, agent::kListenerFd},
                                          {plan.groups.run.get(), agent::kCgroupFd},
                                          {birth.get(), agent::kBirthFd},
                                          {-1, agent::kSpawnerFd},
                                          {-1, agent::kProbeFd},
                                          {sudo, agent::kSudoFd},
                                          {plan.rest, agent::kRestFd}};
  int number = agent::kMemoryEventsFd;
  for (const Fd& counter : plan.groups.counters) places.push_back({counter.get(), number++});
  ATOLL_TRY(int binary, linux::lift_descriptor(plan.program));
  ATOLL_TRY_VOID(linux::place_descriptors(places, agent::kRestFd));
  ATOLL_TRY_VOID(linux::limit_open_files(plan.birth.guest.open_files, kAgentOpenFiles));
  const char* arguments[] = {"atoll-agent", nullptr};
  const char* environment[] = {nullptr};
  syscall(SYS_execveat, binary, "", arguments, environment, AT_EMPTY_PATH);
  return Error::system("execute the agent");
}

Result<void> become(const GuestPlan& plan) {
  ATOLL_TRY_VOID(linux::make_all_mounts_private());
  if (sethostname(kHostName.data(), kHostName.size()) != 0) return Error::system("sethostname");
  ATOLL_TRY(Room room, build_root());
  ATOLL_TRY_VOID(linux::pivot_into(room.root.get()));
  ATOLL_TRY(Fd sudo, linux::listen_for_sudo(room.run_atoll.get()));
  ATOLL_TRY_VOID(linux::confine_agent(plan.birth.guest.pids));
  return execute_agent(plan, sudo.get());
}

}  // namespace

void become_agent(const GuestPlan& plan) {
  Fd log(open("/dev/kmsg", O_WRONLY | O_CLOEXEC));
  Result<void> failed = become(plan);
  (void)write_all(log.get(), "atoll: " + failed.error().message() + "\n");
  _exit(1);
}

}  // namespace atl::microvm
