#include "agent/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "agent/birth.h"
#include "agent/exec_file_rules.h"
#include "base/file.h"
#include "linux/unix_socket.h"

namespace atl::agent {
namespace {

// leaf, stdin, stdout, stderr, report, encoded Start or FileRequest, the control socket of a
// controlled program, and what it begins from if that is an imprint.
constexpr size_t kMinFds = 6;
constexpr size_t kMaxFds = 8;
static_assert(kMaxFds <= linux::kMaxSentFds);
constexpr uint32_t kSpawnMagic = 0x4e575053;

// In-sandbox root may stop the spawner, but not the agent's loop for long. Many short waits,
// because time that the sandbox spends frozen ends only the one that it began in.
constexpr int kWaits = 20;
constexpr int kWaitMillis = 250;

struct SpawnRequest {
  uint32_t magic;
  Becomes becomes;
};

struct SpawnReply {
  int32_t pid;  // or 0
  int32_t system_errno;
};

Result<void> send_request(int socket, Becomes becomes, std::span<const int> fds) {
  SpawnRequest request = {kSpawnMagic, becomes};
  std::span<const char> bytes(reinterpret_cast<const char*>(&request), sizeof request);
  return linux::send_message(socket, bytes, fds, MSG_DONTWAIT);
}

Result<void> wait_readable(int socket) {
  pollfd poll_fd = {socket, POLLIN, 0};
  for (int i = 0; i < kWaits; ++i) {
    int count = poll(&poll_fd, 1, kWaitMillis);
    if (count > 0) return {};
    if (count < 0 && errno != EINTR) return Error::system("wait for spawner");
  }
  return Error::from_errno("wait for spawner", ETIMEDOUT);
}

Result<Fd> memory_file(std::string_view bytes) {
  Fd file(memfd_create("start", MFD_CLOEXEC));
  if (!file) return Error::system("create memfd");
  ATOLL_TRY_VOID(write_all(file.get(), bytes));
  if (lseek(file.get(), 0, SEEK_SET) != 0) return Error::system("rewind memfd");
  return file;
}

using ReceivedFds = std::array<Fd, kMaxFds>;

// False when the agent has gone.
Result<bool> receive_request(int socket, SpawnRequest& request, ReceivedFds& fds) {
  std::span<char> bytes(reinterpret_cast<char*>(&request), sizeof request);
  ATOLL_TRY(linux::Received received, linux::receive_message(socket, bytes, fds));
  if (received.bytes == 0) return false;
  bool whole = received.whole && received.bytes == sizeof request && request.magic == kSpawnMagic &&
               request.becomes <= kLastBecomes && received.fds >= kMinFds &&
               (request.becomes == Becomes::kImprint) == (received.fds == kMaxFds);
  if (!whole) return Error(Code::kCorrupt, "malformed spawn request");
  return true;
}

Result<linux::CloneOutcome> start_any(Becomes becomes, std::string_view payload,
                                      const StartFds& fds, const rlimit& open_files) {
  if (becomes == Becomes::kWorker) {
    ATOLL_TRY(FileRequest request, decode_file_request(payload));
    return start_worker(request, fds, open_files, Parent::kCallersParent);
  }
  ATOLL_TRY(Start start, decode_start(payload));
  return start_process(start, fds, open_files, Parent::kCallersParent, becomes);
}

Result<pid_t> spawn(Becomes becomes, const ReceivedFds& fds, const SpawnBasis& basis) {
  ATOLL_TRY(std::string payload, read_all(fds[5].get(), kMaxRequestBytes));
  StartFds start_fds = {.leaf = fds[0].get(),
                        .standard_input = fds[1].get(),
                        .stdout_pipe = fds[2].get(),
                        .stderr_pipe = fds[3].get(),
                        .report = fds[4].get(),
                        .file_rules = basis.file_rules.get(),
                        .control = fds[6].get(),
                        .imprint = fds[7].get()};
  ATOLL_TRY(auto outcome, start_any(becomes, payload, start_fds, basis.open_files));
  return outcome.pid;
}

}  // namespace

Result<pid_t> Spawner::start(Becomes becomes, std::string_view payload, const StartFds& fds) {
  if (!socket_) return Error(Code::kUnavailable, "spawner", EPIPE);
  auto file = memory_file(payload);
  if (!file) return Error(Code::kSystem, "memfd", file.error().system_errno());
  int passed[kMaxFds] = {fds.leaf,   fds.standard_input, fds.stdout_pipe, fds.stderr_pipe,
                         fds.report, file->get(),        fds.control,     fds.imprint};
  size_t count = kMinFds;
  if (fds.control >= 0) count = fds.imprint < 0 ? kMaxFds - 1 : kMaxFds;
  return exchange(becomes, std::span(passed).first(count));
}

Result<pid_t> Spawner::exchange(Becomes becomes, std::span<const int> fds) {
  SpawnReply reply = {};
  auto ready = send_request(socket_.get(), becomes, fds);
  if (ready) ready = wait_readable(socket_.get());
  ssize_t count = ready ? recv(socket_.get(), &reply, sizeof reply, MSG_DONTWAIT) : -1;
  if (count != sizeof reply) {
    // A late answer would be taken for that of the next request.
    int failure = ready ? EPIPE : ready.error().system_errno();
    socket_.reset();
    return Error(Code::kUnavailable, "spawner", failure);
  }
  if (reply.pid <= 0) return Error(Code::kSystem, "clone", reply.system_errno);
  return static_cast<pid_t>(reply.pid);
}

Result<void> pass_gate(int gate) {
  Fd socket(gate);
  char message = 0;
  ssize_t count = recv(socket.get(), &message, 1, 0);
  if (count < 0) return Error::system("wait at the gate");
  if (count == 0 || message != kGateOpen) return Error(Code::kUnavailable, "the gate", EPIPE);
  return {};
}

Result<SpawnBasis> make_spawn_basis() {
  SpawnBasis basis;
  ATOLL_TRY(basis.file_rules, make_exec_file_rules(Landlock::kWhereThereIs));
  ATOLL_TRY(OpenFilesLimits open_files, raise_open_files_limit());
  basis.open_files = open_files.programs;
  return basis;
}

Result<bool> serve_spawn(int socket, const SpawnBasis& basis) {
  SpawnRequest request = {};
  ReceivedFds fds;
  ATOLL_TRY(bool more, receive_request(socket, request, fds));
  if (!more) return false;
  auto pid = spawn(request.becomes, fds, basis);
  // Before the answer: from then on only the program may hold its pipes.
  fds = {};
  SpawnReply reply = {pid.ok() ? *pid : 0, 0};
  if (!pid.ok()) reply.system_errno = std::max(1, pid.error().system_errno());
  if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
    return Error::system("answer agent");
  return true;
}

Result<void> serve_spawns(int socket) {
  ATOLL_TRY(SpawnBasis basis, make_spawn_basis());
  bool more = true;
  while (more) {
    ATOLL_TRY(more, serve_spawn(socket, basis));
  }
  return {};
}

}  // namespace atl::agent
