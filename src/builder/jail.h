// One stage of a build: a function that runs as the first process of a pid namespace, in a root of
// its own, as root of a user namespace whose 65,536 ids nobody else has. It sees /usr of this host
// and nothing else of it, its build's directory at /build, and the network only if it says so. When
// it ends, by whatever means, everything it started is gone.
//
// Call from a single-threaded root process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::builder {

// Beyond what useradd hands out, and beyond the ranges that the warden gives to sandboxes.
inline constexpr uint32_t kFirstId = 0x60000000;
inline constexpr uint32_t kIds = 65'536;

// What all stages have in common.
struct Ground {
  std::string mount_point;  // an empty directory that only root can enter
  Fd host_network;          // the namespace that has the network
};

struct Jail {
  enum class Network : unsigned char { kNone, kHost };
  enum class Programs : unsigned char {
    kFiltered,  // the system call filter of sandboxes' programs, nothing on /build is executed
    kPinned,    // that filter; executes what an earlier stage has found to be what it should be
    kAny,       // may make namespaces and execute what it fetched
  };
  Network network = Network::kNone;
  Programs programs = Programs::kFiltered;
  uint64_t capabilities = 0;  // in its user namespace
  std::string work;           // at /build
  std::string cache;          // at /cache; empty: none
  int log = -1;               // standard output and error
  std::vector<int> kept;      // descriptors that it shall have besides, with their numbers
  std::chrono::steady_clock::time_point deadline;
};

inline constexpr size_t kMaxAnswerBytes = 1024;

// Gives the answer of `body`. Whatever a jail says is to be taken as its word only: an error of
// code kInvalid is what the body found wrong with its input.
Result<std::string> run_in_jail(const Ground& ground, const Jail& jail,
                                const std::function<Result<std::string>()>& body);

}  // namespace atl::builder
