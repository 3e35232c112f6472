#include "agent/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/birth.h"
#include "agent/exec_file_rules.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

// Kept free, so that a daemon can always connect, a leaf can always be killed and removed, and sudo
// can ask: see SudoDesk.
constexpr rlim_t kSpareDescriptors = 64;

Error failed(std::string_view operation, int system_errno) {
  return Error(Code::kSystem, std::string(operation), system_errno);
}

struct Pipe {
  Fd read_end;
  Fd write_end;
};

// Only the agent's end is non-blocking: programs do not expect EAGAIN from write.
Result<Pipe> make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return failed("pipe", errno);
  Pipe pipe = {Fd(fds[0]), Fd(fds[1])};
  if (fcntl(fds[0], F_SETFL, O_RDONLY | O_NONBLOCK) != 0) return failed("pipe", errno);
  return pipe;
}

}  // namespace

Result<Launcher> Launcher::create(Fd spawner_socket) {
  Launcher launcher;
  ATOLL_TRY(launcher.open_files_, raise_open_files_limit());
  ATOLL_TRY(launcher.null_device_, open_null_device());
  ATOLL_TRY(launcher.file_rules_, make_exec_file_rules(Landlock::kWhereThereIs));
  launcher.has_spawner_ = spawner_socket.valid();
  launcher.spawner_ = Spawner(std::move(spawner_socket));
  return launcher;
}

Result<Launched> Launcher::launch(const Leaf& leaf, const Start& start,
                                  std::string_view start_payload, int standard_input,
                                  Becomes becomes) {
  ATOLL_TRY(Pipe out, make_pipe());
  ATOLL_TRY(Pipe err, make_pipe());
  ATOLL_TRY(Pipe report, make_pipe());
  ATOLL_TRY_VOID(check_spare_descriptors(report.write_end.get()));
  auto created = leaf.create();
  if (!created) return failed("mkdir cgroup", created.error().system_errno());
  auto directory = leaf.open_directory();
  if (!directory) return failed("open cgroup", directory.error().system_errno());
  StartFds fds = {.leaf = directory->get(),
                  .standard_input = standard_input,
                  .stdout_pipe = out.write_end.get(),
                  .stderr_pipe = err.write_end.get(),
                  .report = report.write_end.get(),
                  .file_rules = file_rules_.get()};
  ATOLL_TRY(Launched launched, clone_into(start, start_payload, fds, becomes));
  launched.stdout_pipe = std::move(out.read_end);
  launched.stderr_pipe = std::move(err.read_end);
  launched.report = std::move(report.read_end);
  return launched;
}

Result<Launched> Launcher::launch_beside(const Leaf& leaf, const Start& start,
                                         const Streams& streams) {
  ATOLL_TRY(Pipe report, make_pipe());
  ATOLL_TRY_VOID(check_spare_descriptors(report.write_end.get()));
  auto directory = leaf.open_directory();
  if (!directory) return failed("open cgroup", directory.error().system_errno());
  StartFds fds = {.leaf = directory->get(),
                  .standard_input = streams.input,
                  .stdout_pipe = streams.output,
                  .stderr_pipe = streams.error,
                  .report = report.write_end.get(),
                  .file_rules = file_rules_.get()};
  std::string payload = encode(leaf.number(), start).substr(kHeaderBytes);
  ATOLL_TRY(Launched launched, clone_into(start, payload, fds, Becomes::kProgram));
  launched.report = std::move(report.read_end);
  return launched;
}

Result<Launched> Launcher::clone_into(const Start& start, std::string_view start_payload,
                                      const StartFds& fds, Becomes becomes) {
  Launched launched = {};
  if (!has_spawner_) {
    auto outcome = start_process(start, fds, open_files_.programs, Parent::kCaller, becomes);
    if (!outcome) return failed("clone", outcome.error().system_errno());
    launched.pid = outcome->pid;
    launched.pidfd = std::move(outcome->pidfd);
    return launched;
  }
  auto pid = spawner_.start(start_payload, fds, becomes);
  if (!pid) return failed(pid.error().message(), pid.error().system_errno());
  launched.pid = *pid;
  // Our child and not waited for, so the number is still its own.
  auto pidfd = linux::open_pidfd(*pid);
  if (!pidfd) return failed("pidfd_open", pidfd.error().system_errno());
  launched.pidfd = std::move(*pidfd);
  return launched;
}

Result<void> Launcher::check_spare_descriptors(int highest) const {
  // Numbers are given out lowest first, so all above the newest are free.
  if (static_cast<rlim_t>(highest) + kSpareDescriptors < open_files_.own.rlim_cur) return {};
  return failed("pipe", EMFILE);
}

}  // namespace atl::agent
