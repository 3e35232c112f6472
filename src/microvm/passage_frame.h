// What the two ends of a passage say to each other over its one stream: which connections there
// are, their bytes, and how many more each may send. Both treat the other's bytes as hostile.
//
// Connections are numbered by the guest, and the numbers grow: what carries one that is gone is of
// a connection that has just ended, and is dropped. A connection begins with kPassageWindow bytes
// of credit each way; whoever sends more breaks the protocol, so what is kept is bounded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atl::microvm {

enum class PassageKind : uint32_t {
  kOpen = 1,    // guest → keeper: a Destination
  kData = 2,    // either way; of a question or its answer: the whole datagram
  kEnd = 3,     // either way: no byte follows from this side
  kReset = 4,   // either way: it is over
  kCredit = 5,  // either way: so many more bytes may be sent, as uint32_t
};

enum class Transport : uint8_t { kStream = 6, kQuestion = 17 };  // numbers of IP

struct Destination {
  Transport transport;
  uint8_t reserved;  // 0
  uint16_t port;     // not 0; of a question kQuestionPort
  std::array<unsigned char, 4> address;
};
static_assert(sizeof(Destination) == 8);

inline constexpr uint16_t kQuestionPort = 53;
inline constexpr uint32_t kPassageWindow = 64 * 1024;
inline constexpr uint32_t kMaxPassageBytes = 16 * 1024;  // in one kData

struct PassageFrame {
  PassageKind kind = PassageKind::kReset;
  uint32_t connection = 0;
  std::string data = {};         // kData
  Destination destination = {};  // kOpen
  uint32_t credit = 0;           // kCredit
};

std::string encode_passage(PassageKind kind, uint32_t connection, std::string_view data = {});
std::string encode_open(uint32_t connection, const Destination& destination);
std::string encode_credit(uint32_t connection, uint32_t credit);

// Takes one whole frame off the front of `bytes`, every field checked; false: there is none yet.
Result<bool> take_passage_frame(std::string_view& bytes, PassageFrame& frame);

}  // namespace atl::microvm
