#include "agent/sudo_request.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "agent/linger_guard.h"
#include "base/file.h"
#include "linux/pidfd.h"
#include "linux/unix_socket.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace atl::agent {
namespace {

Error malformed() { return Error(Code::kCorrupt, "malformed request", EPROTO); }

// Gives who sent it.
Result<std::optional<pid_t>> receive(int socket, ForeignFds& fds) {
  SudoRequest request = {};
  std::span<char> bytes(reinterpret_cast<char*>(&request), sizeof request);
  LingerGuard guard;  // descriptors that do not fit are dropped by this call
  ATOLL_TRY(linux::Received received,
            linux::receive_message(socket, bytes, fds.all(), MSG_DONTWAIT));
  bool whole = received.whole && received.bytes == sizeof request;
  if (!whole || received.fds != kSudoFds || request.magic != kSudoMagic) return malformed();
  return received.sender;
}

// Only a sealed memfd can be read without waiting and without its bytes changing meanwhile.
Result<Start> read_start(int file) {
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return malformed();
  if (lseek(file, 0, SEEK_SET) != 0) return malformed();
  auto payload = read_all(file, kMaxRequestBytes);
  if (!payload) return Error(Code::kInvalid, "read the command", E2BIG);
  auto start = decode_start(*payload);
  if (!start) return malformed();
  return start;
}

Result<Fd> open_peer(int socket, pid_t pid) {
  int number = -1;
  socklen_t length = sizeof number;
  // Since 6.5. Before, a client that had ended and whose number another process got meanwhile is
  // taken for that one, which belongs to the same sandbox.
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &number, &length) == 0) return Fd(number);
  return linux::open_pidfd(pid);
}

// "0::/…/run/<number>": the part above is the warden's and depends on the namespace. In gVisor
// "<n>:<controllers>:/run/<number>", of the one tree that there is.
std::optional<uint32_t> parse_leaf(std::string_view cgroups) {
  constexpr std::string_view kUnified = "0::/";
  constexpr std::string_view kSentrys = "pids:/run/";
  constexpr std::string_view kParent = "/run/";
  while (!cgroups.empty()) {
    std::string_view line = cgroups.substr(0, cgroups.find('\n'));
    cgroups.remove_prefix(std::min(cgroups.size(), line.size() + 1));
    if (!line.starts_with(kUnified) && line.find(kSentrys) == line.npos) continue;
    size_t parent = line.rfind(kParent);
    if (parent == line.npos) return std::nullopt;
    std::string_view name = line.substr(parent + kParent.size());
    uint32_t number = 0;
    auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    bool whole = code == std::errc() && end == name.data() + name.size();
    return whole ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// "Max open files   <soft>   <hard>   files"
std::optional<uint32_t> parse_open_files(std::string_view limits) {
  constexpr std::string_view kName = "Max open files";
  size_t begin = limits.find(kName);
  if (begin == limits.npos) return std::nullopt;
  std::string line(limits.substr(begin + kName.size()));
  unsigned soft = 0, hard = 0;
  if (sscanf(line.c_str(), "%u %u", &soft, &hard) != 2 || hard == 0) return std::nullopt;
  return hard;
}

}  // namespace

ForeignFds::~ForeignFds() {
  LingerGuard guard;
  for (Fd& fd : fds_) fd.reset();
}

Result<SudoCommand> receive_sudo_request(int socket) {
  ForeignFds fds;
  ATOLL_TRY(std::optional<pid_t> sender, receive(socket, fds));
  ATOLL_TRY(Start start, read_start(fds.number(3)));
  return SudoCommand{std::move(start), std::move(fds), sender};
}

Result<SudoCaller> find_sudo_caller(int socket, std::optional<pid_t> sender) {
  ATOLL_TRY(auto peer, linux::peer_credentials(socket));
  // gVisor's kernel takes the one who asks for the one who is asked about.
  if (peer.pid == getpid()) peer.pid = sender.value_or(0);
  ATOLL_TRY(Fd process, open_peer(socket, peer.pid));
  std::string directory = "/proc/" + std::to_string(peer.pid);
  auto cgroups = read_file(directory + "/cgroup");
  auto limits = read_file(directory + "/limits");
  // After the reading: while it lives, the number is its own.
  if (!cgroups || !limits || linux::has_ended(process.get()))
    return Error(Code::kNotFound, "find the caller", ESRCH);
  auto leaf = parse_leaf(*cgroups);
  if (!leaf) return Error(Code::kNotFound, "find the caller's exec", ESRCH);
  auto open_files = parse_open_files(*limits);
  if (!open_files) return Error(Code::kCorrupt, "read the caller's limits", EPROTO);
  return SudoCaller{*leaf, *open_files};
}

}  // namespace atl::agent
