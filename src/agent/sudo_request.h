// The request of a sudo client, taken from its connection and checked.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "agent/protocol.h"
#include "agent/sudo_protocol.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

// Descriptors that a program of the sandbox has sent, so of anything.
class ForeignFds {
 public:
  ForeignFds() = default;
  ForeignFds(ForeignFds&& other) noexcept = default;
  ForeignFds& operator=(ForeignFds&& other) = delete;
  ~ForeignFds();

  std::span<Fd> all() { return fds_; }
  int number(size_t index) const { return fds_[index].get(); }

 private:
  std::array<Fd, kSudoFds> fds_;
};

struct SudoCommand {
  Start start;
  ForeignFds fds;               // standard input, output, error; the fourth has been read
  std::optional<pid_t> sender;  // as the kernel says
};

// EAGAIN is the only error after which the connection is still good.
Result<SudoCommand> receive_sudo_request(int socket);

// The process that made the connection. It must still live.
struct SudoCaller {
  uint32_t leaf;        // the number of the one in which it runs
  uint32_t open_files;  // what it may have at most
};
Result<SudoCaller> find_sudo_caller(int socket, std::optional<pid_t> sender);

}  // namespace atl::agent
