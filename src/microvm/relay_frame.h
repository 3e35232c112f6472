// What the keeper and the guest's first process say to each other over the one serial port: which
// connection of atolld's there is, and its bytes. The agent's stream is inside, untouched.
//
// Connections have numbers that grow; what carries an older number than the newest kOpen is of a
// connection that is gone, and is dropped. Both sides treat the other's bytes as hostile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::microvm {

enum class RelayKind : uint32_t {
  kOpen = 1,   // keeper → guest: there is a new connection; the one before has gone
  kData = 2,   // either way
  kClose = 3,  // either way: no byte of it follows
  kReady = 4,  // guest → keeper, once: it is up; nothing is opened before
  kClock = 5,  // keeper → guest, at once: the host's time in nanoseconds, as int64_t
  // guest → keeper: nothing runs in it, and it has read so many bytes of the port, as uint64_t; if
  // no more were sent, nothing will happen there before the next.
  kRest = 6,
  // keeper → guest, first of all, where it begins with the memory of another: a Rebirth. The guest
  // answers with an empty one when it is what that says; what comes before is the other's.
  kReborn = 7,
  kLayDown = 8,  // guest → keeper: others shall begin with its memory as it is now
  // Where the keeper keeps the guest's files (agent/still_files.h), one time after the other:
  kKeepFiles = 9,    // guest → keeper: as they are now
  kFilesKept = 10,   // keeper → guest: they are, or why not: an errno, as int64_t
  kFilesTaken = 11,  // guest → keeper: whoever asked has them, or has gone
};

struct RelayHeader {
  RelayKind kind;
  uint32_t connection;
  uint32_t bytes;  // that follow; 0 but for kData, kClock, kRest, kReborn, kFilesKept
};
static_assert(sizeof(RelayHeader) == 12);

inline constexpr uint32_t kMaxRelayBytes = 32 * 1024;  // in one kData

std::string encode_relay(RelayKind kind, uint32_t connection, std::string_view data = {});

// Takes one whole frame off the front of `bytes`; false: there is none yet.
struct RelayFrame {
  RelayHeader header = {};
  std::string data;
};
Result<bool> take_relay_frame(std::string& bytes, RelayFrame& frame);

}  // namespace atl::microvm
