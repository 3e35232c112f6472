// AF_UNIX sockets by path, and descriptors sent over them: see unix(7).
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::linux {

// A listening socket `name` in the open directory, mode 0600, owned by the caller. The directory
// may be deeper than the 108 bytes of sun_path. An existing file of that name is an error
// (EADDRINUSE).
Result<Fd> listen_at(int directory, const std::string& name, int type, int backlog);
Result<Fd> connect_at(int directory, const std::string& name, int type);

struct SocketPair {
  Fd ours;
  Fd theirs;
};
Result<SocketPair> make_socket_pair(int type);

// Who was on the other side when the connection was made.
struct PeerCredentials {
  pid_t pid;
  uid_t uid;
};
Result<PeerCredentials> peer_credentials(int socket);

inline constexpr size_t kMaxSentFds = 15;

// One message with descriptors. `flags` are those of sendmsg(2); there is no SIGPIPE.
Result<void> send_message(int socket, std::span<const char> bytes, std::span<const int> fds,
                          int flags = 0);

struct Received {
  size_t bytes;  // 0: the other end is gone
  size_t fds;
  bool whole;                   // false: more bytes or descriptors came than there was room for
  std::optional<pid_t> sender;  // if SO_PASSCRED is set on the socket
};
// Takes one message, with descriptors that execve closes. What has no room is dropped before it
// returns. An error leaves `fds` as they were.
Result<Received> receive_message(int socket, std::span<char> bytes, std::span<Fd> fds,
                                 int flags = 0);

// One message of one byte, with descriptors.
Result<void> send_byte(int socket, char byte, std::span<const int> fds = {});

struct ByteMessage {
  char byte;
  Fd fds[kMaxSentFds];
  std::optional<pid_t> sender;  // if SO_PASSCRED is set on the receiving socket
};
// Nothing when the other side is closed. A timeout of -1 waits for ever.
Result<std::optional<ByteMessage>> receive_byte(int socket, int timeout_ms);

struct TextMessage {
  std::string text;
  std::optional<pid_t> sender;  // if SO_PASSCRED is set on the receiving socket
};
// One message of at most `limit` bytes; a longer one is an error, the end of the stream an empty
// text.
Result<TextMessage> receive_text(int socket, size_t limit, int timeout_ms);

}  // namespace atl::linux
