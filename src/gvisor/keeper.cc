#include "gvisor/keeper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "agent/birth.h"
#include "agent/channel_protocol.h"
#include "agent/launcher.h"
#include "agent/leaf.h"
#include "agent/probe.h"
#include "base/file.h"
#include "gvisor/sentry.h"
#include "linux/unix_socket.h"
#include "microvm/kept_program.h"

namespace atl::gvisor {
namespace {

constexpr uint32_t kProbeLeaf = 0;
constexpr uint32_t kSentryLeaf = 2;
constexpr size_t kMaxProgramBytes = 64 << 20;
constexpr size_t kMaxAnswerBytes = 4096;
constexpr int kPatienceMs = 20'000;

std::string place_of(const char* name) { return std::string(kDirectory) + "/" + name; }

Result<void> write_new_file(const char* name, unsigned mode, std::string_view bytes) {
  ATOLL_TRY(Fd file, open_file(place_of(name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  return write_all(file.get(), bytes);
}

std::string guest_birth(const agent::Birth& birth) {
  agent::BirthRecord record = {};
  record.version = agent::kBirthVersion;
  record.on_oom = birth.on_oom;
  record.has_sudo = 1;
  record.nonce = birth.nonce;
  record.guest = birth.guest;
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

// Blocks are overwritten where they are, or old versions of them would count against the limit too;
// a file system that cannot do so says no.
Result<void> make_layer() {
  ATOLL_TRY(Fd layer, open_file(place_of(kLayer), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  int flags = FS_NOCOW_FL;
  (void)ioctl(layer.get(), FS_IOC_SETFLAGS, &flags);
  if (fchown(layer.get(), microvm::kKeptUser, microvm::kKeptUser) != 0)
    return Error::system("chown the layer");
  return {};
}

Result<void> write_files(const agent::Birth& birth) {
  ATOLL_TRY_VOID(make_directory(kDirectory, 0700));
  // The same program is process 1 inside.
  ATOLL_TRY(std::string own, read_file("/proc/self/exe", kMaxProgramBytes));
  ATOLL_TRY_VOID(write_new_file(kProgram, 0555, own));
  ATOLL_TRY_VOID(write_new_file(kBirth, 0444, guest_birth(birth)));
  ATOLL_TRY_VOID(write_new_file(kConfiguration, 0444, sentry_configuration(birth.guest)));
  ATOLL_TRY_VOID(make_layer());
  if (chown(kDirectory, microvm::kKeptUser, microvm::kKeptUser) != 0)
    return Error::system("chown the sentry's directory");
  return {};
}

Result<void> await_input(int fd) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  int count = poll(&waiting, 1, kPatienceMs);
  if (count < 0) return Error::system("wait for the sentry");
  return count > 0 ? Result<void>() : Error::from_errno("wait for the sentry", ETIMEDOUT);
}

// One byte says that it listens; its end, that it could not.
Result<void> await_sentry(const agent::Launched& sentry) {
  ATOLL_TRY_VOID(await_input(sentry.stdout_pipe.get()));
  char byte;
  if (read(sentry.stdout_pipe.get(), &byte, 1) == 1) return {};
  auto said = read_all(sentry.stderr_pipe.get());
  return Error(Code::kUnavailable, "the sentry did not start: " + (said ? *said : std::string()));
}

Result<void> call(int control, const std::string& text) {
  ATOLL_TRY_VOID(write_all(control, text));
  ATOLL_TRY_VOID(await_input(control));
  char bytes[kMaxAnswerBytes];
  ssize_t count = read(control, bytes, sizeof bytes);
  std::string answer(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  if (is_success(answer)) return {};
  return Error(Code::kUnavailable, "the sentry refused " + text + ": " + answer);
}

Result<void> begin(const agent::Launched& sentry) {
  ATOLL_TRY_VOID(await_sentry(sentry));
  ATOLL_TRY(Fd directory, open_file(kDirectory, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd control, linux::connect_at(directory.get(), kControl, SOCK_STREAM));
  ATOLL_TRY_VOID(call(control.get(), loopback_call()));
  return call(control.get(), begin_call());
}

// Stays open when the sentry is executed.
Result<int> lend(Fd fd) {
  if (fcntl(fd.get(), F_SETFD, 0) != 0) return Error::system("lend a descriptor");
  return fd.release();
}

Result<int> lend_file(const std::string& path, int flags) {
  ATOLL_TRY(Fd file, open_file(path, flags));
  return lend(std::move(file));
}

Result<int> lend_copy(int number) {
  Fd copy(fcntl(number, F_DUPFD, STDERR_FILENO + 1));
  if (!copy) return Error::system("duplicate a stream");
  return copy.release();
}

Result<SentryFds> lend_all() {
  SentryFds fds = {};
  ATOLL_TRY(Fd directory, open_file(kDirectory, O_RDONLY | O_DIRECTORY));
  ATOLL_TRY(Fd control, linux::listen_at(directory.get(), kControl, SOCK_STREAM, 1));
  ATOLL_TRY(fds.control, lend(std::move(control)));
  ATOLL_TRY(fds.configuration, lend_file(place_of(kConfiguration), O_RDONLY));
  ATOLL_TRY(fds.image, lend_file(kImageFile, O_RDONLY));
  ATOLL_TRY(fds.layer, lend_file(place_of(kLayer), O_RDWR));
  ATOLL_TRY(fds.program, lend_file(place_of(kProgram), O_RDONLY));
  ATOLL_TRY(fds.birth, lend_file(place_of(kBirth), O_RDONLY));
  ATOLL_TRY(fds.sudo, lend_file(kSudoFile, O_RDONLY));
  fds.passage = agent::kControlFd;  // as it was started with
  ATOLL_TRY(fds.started, lend_copy(STDOUT_FILENO));
  ATOLL_TRY(fds.input, lend_copy(STDIN_FILENO));
  ATOLL_TRY(fds.output, lend_copy(STDERR_FILENO));
  ATOLL_TRY(fds.error, lend_copy(STDERR_FILENO));
  return fds;
}

}  // namespace

Result<void> run_sentry() {
  agent::BirthRecord birth;
  ATOLL_TRY(std::string record, read_file(place_of(kBirth)));
  if (record.size() != sizeof birth) return Error(Code::kCorrupt, "bad birth record");
  std::memcpy(&birth, record.data(), sizeof birth);
  ATOLL_TRY(SentryFds fds, lend_all());
  std::vector<std::string> words = sentry_command(fds, birth.guest);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* environment[] = {nullptr};
  execve(kRunsc, arguments.data(), environment);
  return Error::system(std::string("execute ") + kRunsc);
}

Result<void> run_keeper() {
  ATOLL_TRY(agent::Birth birth, agent::take_birth());
  if (signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Error::system("ignore SIGPIPE");
  ATOLL_TRY(agent::Launcher launcher, agent::Launcher::create(std::move(birth.spawner)));
  // The warden looks at it while the sentry is being started.
  agent::Leaf probe(birth.cgroup.get(), kProbeLeaf);
  ATOLL_TRY(
      [[maybe_unused]] agent::Launched probing,
      agent::start_probe(launcher, probe, std::move(birth.probe), agent::Becomes::kSentryProbe));
  ATOLL_TRY_VOID(write_files(birth));
  microvm::KeptPrograms programs(launcher, birth.cgroup.get());
  ATOLL_TRY(auto port, linux::make_socket_pair(SOCK_STREAM));
  ATOLL_TRY(agent::Launched sentry, programs.start(kSentryLeaf, {place_of(kProgram), kSentryRole},
                                                   port.theirs.get(), agent::Becomes::kSentry));
  port.theirs.reset();
  ATOLL_TRY_VOID(begin(sentry));
  microvm::KeptProgram kept(std::move(sentry), std::move(port.ours),
                            agent::Leaf(birth.cgroup.get(), kSentryLeaf));
  return kept.keep(birth.listener.get(), [] {});
}

}  // namespace atl::gvisor
