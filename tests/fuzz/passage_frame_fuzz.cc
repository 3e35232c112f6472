// What a guest says in its passage, in pieces as a stream gives it: the frames, and then the keeper
// that takes them. A frame that is taken is within its bounds, is what was sent, and does not
// depend on where the stream was cut; whatever is said, the keeper keeps no more than its limits.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "microvm/passage.h"

namespace {

using namespace atl::microvm;

struct Taken {
  std::string frames;  // encoded again
  bool failed = false;
};

std::string encode_again(const PassageFrame& frame) {
  if (frame.kind == PassageKind::kOpen) return encode_open(frame.connection, frame.destination);
  if (frame.kind == PassageKind::kCredit) return encode_credit(frame.connection, frame.credit);
  return encode_passage(frame.kind, frame.connection, frame.data);
}

Taken take_all(std::string_view bytes, size_t piece) {
  Taken taken;
  std::string pending;
  PassageFrame frame;
  while (!bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    pending += next;
    std::string_view rest = pending;
    while (true) {
      auto whole = take_passage_frame(rest, frame);
      taken.failed = !whole.ok();
      if (taken.failed) return taken;
      if (!*whole) break;
      ATOLL_CHECK(frame.data.size() <= kMaxPassageBytes);
      ATOLL_CHECK(frame.credit <= kPassageWindow);
      taken.frames += encode_again(frame);
    }
    pending = std::string(rest);
    // Never more than one frame is waited for.
    ATOLL_CHECK(pending.size() < 12 + kMaxPassageBytes);
  }
  return taken;
}

// What it dials answers nothing and takes what its socket holds.
void tell_keeper(std::string_view bytes) {
  int port[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, port) != 0) return;
  std::vector<atl::Fd> servers;
  atl::Fd guest(port[0]);
  auto dial = [&servers](const Destination& to) -> atl::Result<atl::Fd> {
    int pair[2];
    int type = to.transport == Transport::kStream ? SOCK_STREAM : SOCK_DGRAM;
    if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair) != 0)
      return atl::Error::system("socketpair");
    servers.emplace_back(pair[0]);
    return atl::Fd(pair[1]);
  };
  Passage keeper(atl::Fd(port[1]), dial);
  while (!bytes.empty()) {
    ssize_t count = send(guest.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
    std::vector<pollfd> polls;
    keeper.add_watches(polls);
    ATOLL_CHECK(polls.size() <= 1 + kMaxCarried);
    poll(polls.data(), polls.size(), 0);
    if (!keeper.move_bytes(polls) || count <= 0) break;
  }
  ATOLL_CHECK(servers.size() <= 1 << 16);
}

}  // namespace

// The first byte says into how large pieces the stream falls.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Taken pieces = take_all(bytes, 1 + data[0]);
  Taken at_once = take_all(bytes, size);
  ATOLL_CHECK(bytes.starts_with(pieces.frames));
  ATOLL_CHECK(pieces.frames == at_once.frames && pieces.failed == at_once.failed);
  tell_keeper(bytes);
  return 0;
}
