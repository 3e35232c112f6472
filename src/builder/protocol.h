// What atolld may ask of the builder: one connection (SOCK_SEQPACKET) is one build. The client
// sends a Request with two descriptors, reads the log from its end of the second, and gets one
// Reply. Closing the connection ends the build and everything it made.
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"

namespace atl::builder {

inline constexpr uint32_t kMagic = 0x61746c62;  // "atlb"
inline constexpr uint16_t kVersion = 1;
inline constexpr const char* kSocketName = "builder.sock";

enum class Operation : uint16_t {
  kPack = 1,  // the file is a pack: a tar of template.toml and the files it names
  kTree = 2,  // the file is a tar of a whole root
};

// May use the credentials for registries that the operator of this host has set.
inline constexpr uint32_t kWithCredentials = 1;

// Descriptors that come with it: the file, then where to write the log.
inline constexpr size_t kRequestFds = 2;
struct Request {
  uint32_t magic;
  uint16_t version;
  Operation operation;
  uint32_t flags;
  uint32_t reserved;
};
static_assert(sizeof(Request) == 16);

enum class Status : uint16_t {
  kBuilt = 0,
  kRefused = 1,  // what came is wrong; the message says why
  kFailed = 2,   // the host or the network failed
  kBusy = 3,     // as many builds as may be are under way
};

inline constexpr size_t kMaxMessageBytes = 1024;
struct Reply {
  uint32_t magic;
  uint16_t version;
  Status status;
  std::array<unsigned char, Digest::kBytes> image;
  uint64_t image_bytes;
  uint32_t elapsed_ms;
  uint32_t message_bytes;
  std::array<char, kMaxMessageBytes> message;  // written by a jail: nobody's word
};
static_assert(sizeof(Reply) == 56 + kMaxMessageBytes);

// Lines of the log that begin so say how far the build is: "#step 2/5 fetching packages".
inline constexpr const char* kStepPrefix = "#step ";

}  // namespace atl::builder
