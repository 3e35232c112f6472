#include "agent/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/birth.h"
#include "agent/exec_file_rules.h"
#include "agent/program_streams.h"
#include "linux/pidfd.h"

namespace atl::agent {
namespace {

// Kept free, so that a daemon can always connect, a leaf can always be killed and removed, and sudo
// can ask: see SudoDesk.
constexpr rlim_t kSpareDescriptors = 64;

Error failed(std::string_view operation, int system_errno) {
  return Error(Code::kSystem, std::string(operation), system_errno);
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
  Fd imprint = std::move(imprint_);
  if (leaf.number() != imprint_for_ || start.control == ControlMode::kNone) imprint.reset();
  if (imprint) becomes = Becomes::kImprint;
  ATOLL_TRY(ProgramStreams streams, open_streams(start));
  ATOLL_TRY(Pipe report, make_output_pipe());
  ATOLL_TRY_VOID(check_spare_descriptors(report.write_end.get()));
  ATOLL_TRY_VOID(make_leaf(leaf));
  auto directory = leaf.open_directory();
  if (!directory) return failed("open cgroup", directory.error().system_errno());
  const auto& programs = streams.programs;
  StartFds fds = {.leaf = directory->get(),
                  .standard_input = programs.input ? programs.input.get() : standard_input,
                  .stdout_pipe = programs.output.get(),
                  .stderr_pipe = programs.error.get(),
                  .report = report.write_end.get(),
                  .file_rules = file_rules_.get(),
                  .control = programs.control.get(),
                  .imprint = imprint.get()};
  ATOLL_TRY(Launched launched, clone_into(start, start_payload, fds, becomes));
  launched.stdin_pipe = std::move(streams.ours.input);
  launched.stdout_pipe = std::move(streams.ours.output);
  launched.stderr_pipe = std::move(streams.ours.error);
  launched.control = std::move(streams.ours.control);
  launched.report = std::move(report.read_end);
  return launched;
}

Result<void> Launcher::make_leaf(const Leaf& leaf) const {
  auto created = leaf.create();
  if (created && leaf_pids_ != 0) created = leaf.limit_processes(leaf_pids_);
  if (!created) return failed("mkdir cgroup", created.error().system_errno());
  return {};
}

bool Launcher::lend_imprint(uint32_t number, Fd imprint) {
  imprint_for_ = number;
  imprint_ = std::move(imprint);
  return imprint_.valid();
}

Result<Launched> Launcher::launch_beside(const Leaf& leaf, const Start& start,
                                         const Streams& streams) {
  ATOLL_TRY(Pipe report, make_output_pipe());
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

Result<Launched> Launcher::launch_worker(const Leaf& leaf, const FileRequest& request,
                                         std::string_view payload, int socket) {
  ATOLL_TRY_VOID(check_spare_descriptors(socket));
  ATOLL_TRY_VOID(make_leaf(leaf));
  auto directory = leaf.open_directory();
  if (!directory) return failed("open cgroup", directory.error().system_errno());
  StartFds fds = {.leaf = directory->get(),
                  .standard_input = socket,
                  .stdout_pipe = null_device(),
                  .stderr_pipe = null_device(),
                  .report = socket,
                  .file_rules = file_rules_.get()};
  if (has_spawner_) return take_spawned(spawner_.start(Becomes::kWorker, payload, fds));
  auto outcome = start_worker(request, fds, open_files_.programs, Parent::kCaller);
  if (!outcome) return failed("clone", outcome.error().system_errno());
  Launched launched = {};
  launched.pid = outcome->pid;
  launched.pidfd = std::move(outcome->pidfd);
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
  // The input is not the spawner's.
  std::string shortened;
  if (!start.input.empty()) {
    Start rest = start;
    rest.input.clear();
    shortened = encode(0, rest);
    start_payload = std::string_view(shortened).substr(kHeaderBytes);
  }
  return take_spawned(spawner_.start(becomes, start_payload, fds));
}

Result<Launched> Launcher::take_spawned(Result<pid_t> pid) const {
  if (!pid) return failed(pid.error().message(), pid.error().system_errno());
  Launched launched = {};
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
