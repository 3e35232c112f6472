#include "agent/farewell.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/counters.h"
#include "agent/frame.h"
#include "agent/spoken_version.h"
#include "base/fd.h"
#include "base/file.h"

namespace atl::agent {
namespace {

constexpr size_t kMaxEventsBytes = 1024;
constexpr int kPatienceMs = 1000;

bool ended_for_memory(int memory_events) {
  char text[kMaxEventsBytes];
  ssize_t count = pread(memory_events, text, sizeof text, 0);
  if (count <= 0) return false;
  return find_count({text, static_cast<size_t>(count)}, "oom_kill").value_or(0) > 0;
}

}  // namespace

std::string encode(const Farewell& farewell) {
  FrameWriter frame(FrameType::kFarewell, 0);
  frame.payload().u16(farewell.version);
  frame.payload().u8(static_cast<uint8_t>(farewell.cause));
  return frame.take();
}

Result<Farewell> decode_farewell(std::string_view payload) {
  ByteReader reader(payload);
  Farewell farewell;
  farewell.version = reader.u16();
  farewell.cause = static_cast<Cause>(reader.u8());
  if (!reader.done() || farewell.cause != Cause::kMemory) return malformed("farewell");
  return farewell;
}

void say_farewell(int listener, int memory_events) {
  if (!ended_for_memory(memory_events)) return;
  pollfd waiting = {.fd = listener, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPatienceMs) != 1) return;
  Fd socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  Farewell farewell = {.version = spoken_version(), .cause = Cause::kMemory};
  // Who does not hear it sees that the agent is gone, as without it.
  if (socket) (void)write_all(socket.get(), encode(farewell));
}

}  // namespace atl::agent
