#include "gvisor/keeper.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "agent/birth.h"
#include "agent/channel_protocol.h"
#include "agent/farewell.h"
#include "agent/launcher.h"
#include "agent/leaf.h"
#include "agent/probe.h"
#include "base/file.h"
#include "gvisor/control.h"
#include "gvisor/sentry.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"
#include "microvm/kept_program.h"
#include "microvm/lent_memory.h"
#include "microvm/rebirth.h"

namespace atl::gvisor {
namespace {

constexpr uint32_t kProbeLeaf = 0;
constexpr uint32_t kSentryLeaf = 2;
constexpr size_t kMaxProgramBytes = 64 << 20;
constexpr int kPatienceMs = 20'000;

std::string place_of(const char* name) { return std::string(kDirectory) + "/" + name; }

Result<void> write_new_file(const char* name, unsigned mode, std::string_view bytes) {
  unlink(place_of(name).c_str());  // of a snapshot
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
  unlink(place_of(kLayer).c_str());
  ATOLL_TRY(Fd layer, open_file(place_of(kLayer), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  int flags = FS_NOCOW_FL;
  (void)ioctl(layer.get(), FS_IOC_SETFLAGS, &flags);
  if (fchown(layer.get(), microvm::kKeptUser, microvm::kKeptUser) != 0)
    return Error::system("chown the layer");
  return {};
}

bool has_toolbox() { return access(kToolboxFile, F_OK) == 0 && access(kModuleFile, F_OK) == 0; }

Result<void> write_files(const agent::Birth& birth) {
  ATOLL_TRY_VOID(make_directory(kDirectory, 0700));
  // The same program is process 1 inside.
  ATOLL_TRY(std::string own, read_file("/proc/self/exe", kMaxProgramBytes));
  ATOLL_TRY_VOID(write_new_file(kProgram, 0555, own));
  ATOLL_TRY_VOID(write_new_file(kBirth, 0444, guest_birth(birth)));
  Toolbox toolbox = has_toolbox() ? Toolbox::kMounted : Toolbox::kNone;
  ATOLL_TRY_VOID(write_new_file(kConfiguration, 0444, sentry_configuration(birth.guest, toolbox)));
  ATOLL_TRY_VOID(make_layer());
  unlink(place_of(kControl).c_str());
  if (chown(kDirectory, microvm::kKeptUser, microvm::kKeptUser) != 0)
    return Error::system("chown the sentry's directory");
  return {};
}

// One byte says that it listens; its end, that it could not.
Result<void> await_sentry(const agent::Launched& sentry) {
  pollfd waiting = {.fd = sentry.stdout_pipe.get(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPatienceMs) != 1) return Error::from_errno("await the sentry", ETIMEDOUT);
  char byte;
  if (read(sentry.stdout_pipe.get(), &byte, 1) == 1) return {};
  auto said = read_all(sentry.stderr_pipe.get());
  return Error(Code::kUnavailable, "the sentry did not start: " + (said ? *said : std::string()));
}

Result<Control> reach(const agent::Launched& sentry) {
  ATOLL_TRY_VOID(await_sentry(sentry));
  ATOLL_TRY(Fd directory, open_file(kDirectory, O_RDONLY | O_DIRECTORY));
  return Control::connect(directory.get(), kControl);
}

Result<void> begin(Control& control) {
  ATOLL_TRY_VOID(control.call(loopback_call(Loopback::kNow)));
  return control.call(begin_call());
}

// All who begin with it would read at one place of the file that they were lent.
Result<void> begin_again(Control& control, const microvm::Lent& lent) {
  ATOLL_TRY(Fd own, open_file("/proc/self/fd/" + std::to_string(lent.memory.get()), O_RDONLY));
  int memory[] = {own.get()};
  ATOLL_TRY_VOID(control.call(loopback_call(Loopback::kWhenRestored)));
  ATOLL_TRY_VOID(microvm::await_begin(lent));
  return control.call(restore_call(), memory);
}

void forget_files() {
  for (const char* name : kKeptFiles) unlink(place_of(name).c_str());
}

// Readable for the sentry that will begin with them.
Result<void> keep_files(Control& control) {
  forget_files();
  std::vector<Fd> files;
  std::vector<int> lent;
  for (const char* name : kKeptFiles) {
    ATOLL_TRY(Fd file, open_file(place_of(name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
    lent.push_back(file.get());
    files.push_back(std::move(file));
  }
  Result<void> kept = control.call(keep_files_call(), lent);
  if (!kept) forget_files();
  return kept;
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
  ATOLL_TRY(fds.copied_program, lend_file(place_of(kProgram), O_RDONLY));
  ATOLL_TRY(fds.started, lend_copy(STDOUT_FILENO));
  ATOLL_TRY(fds.input, lend_copy(STDIN_FILENO));
  fds.output = agent::kControlFd;  // the passage, as it was started with
  ATOLL_TRY(fds.error, lend_copy(STDERR_FILENO));
  if (has_toolbox()) {
    ATOLL_TRY(fds.toolbox, lend_file(kToolboxFile, O_RDONLY));
  }
  if (access(place_of(kKeptFiles[0]).c_str(), F_OK) != 0) return fds;
  for (const char* name : kKeptFiles) {
    ATOLL_TRY(int file, lend_file(place_of(name), O_RDONLY | O_NOFOLLOW));
    fds.files.push_back(file);
  }
  return fds;
}

struct Started {
  agent::Launched sentry;
  Fd port;
  Control control;
};

Result<Started> start_sentry(microvm::KeptPrograms& programs) {
  ATOLL_TRY(auto port, linux::make_socket_pair(SOCK_STREAM));
  ATOLL_TRY(agent::Launched sentry, programs.start(kSentryLeaf, {place_of(kProgram), kSentryRole},
                                                   port.theirs.get(), agent::Becomes::kSentry));
  ATOLL_TRY(Control control, reach(sentry));
  return Started{std::move(sentry), std::move(port.ours), std::move(control)};
}

// It has them open. What is left in the directory is in every snapshot.
void forget_beginning() {
  forget_files();
  for (const char* name : {kLayer, kLaidDown}) unlink(place_of(name).c_str());
}

// Its memory is sealed: nobody that begins with it can change it for others.
Result<void> lay_down(microvm::KeptProgram& sentry, Control& control, int listener) {
  Fd memory(memfd_create("sentry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return Error::system("memfd_create");
  int lent[] = {memory.get()};
  ATOLL_TRY_VOID(control.call(lay_down_call(), lent));
  ATOLL_TRY_VOID(sentry.end());
  ATOLL_TRY_VOID(linux::seal_memory(memory.get()));
  ATOLL_TRY_VOID(write_new_file(kLaidDown, 0444, ""));
  return microvm::lend_memory(listener, memory.get());
}

Result<void> keep_begun(microvm::KeptProgram& sentry, Control& control, const agent::Birth& birth) {
  ATOLL_TRY_VOID(begin(control));
  forget_beginning();
  bool lends = birth.guest.purpose == agent::GuestPurpose::kLender;
  auto lying_down = lends ? microvm::LyingDown::kObeyed : microvm::LyingDown::kRefused;
  int listener = birth.listener.get();
  ATOLL_TRY_VOID(sentry.keep(
      listener, [] {}, lying_down));
  return lay_down(sentry, control, listener);
}

Result<void> keep_restored(microvm::KeptProgram& sentry, Control& control,
                           const agent::Birth& birth) {
  ATOLL_TRY(microvm::Lent lent, microvm::await_memory(birth.listener.get()));
  ATOLL_TRY_VOID(begin_again(control, lent));
  forget_beginning();
  ATOLL_TRY(microvm::Rebirth rebirth, microvm::make_rebirth(birth.nonce));
  return sentry.keep_reborn(birth.listener.get(), rebirth, std::move(lent.socket));
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
  ATOLL_TRY(Started started, start_sentry(programs));
  microvm::KeptProgram kept(std::move(started.sentry), std::move(started.port),
                            agent::Leaf(birth.cgroup.get(), kSentryLeaf));
  Control& control = started.control;
  kept.offer_files({[&control] { return keep_files(control); }, forget_files});
  Result<void> ended = access(place_of(kLaidDown).c_str(), F_OK) == 0
                           ? keep_restored(kept, control, birth)
                           : keep_begun(kept, control, birth);
  agent::say_farewell(birth.listener.get(), birth.memory_events.get());
  return ended;
}

}  // namespace atl::gvisor
