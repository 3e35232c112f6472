// gVisor's sentry as it is told to be: where it finds its files in its jail, OCI's config.json, its
// command line, and the two calls that make it run. Written from numbers only; nothing here or in
// the warden reads such a text.
//
// It is started without the rest of runsc: the jail is its wall, so it needs no namespaces, no
// capabilities and no process that opens files for it. The image is a file that it reads by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/birth_record.h"

namespace atl::gvisor {

// In the jail.
inline constexpr const char* kDirectory = "/sentry";
inline constexpr const char* kConfiguration = "config.json";
inline constexpr const char* kProgram = "atoll-agent";  // process 1 inside
inline constexpr const char* kBirth = "birth";          // an agent::BirthRecord
inline constexpr const char* kLayer = "layer";          // what is written inside
inline constexpr const char* kControl = "control";      // its socket
// Of one that was laid down: who finds it waits for the memory that it shall begin with.
inline constexpr const char* kLaidDown = "laid-down";
// What was in the layer when it was kept; a sentry that finds them begins with that.
inline constexpr const char* kKeptFiles[] = {"files.manifest", "files.tar", "files.pages",
                                             "files.data"};
inline constexpr const char* kImageFile = "/run/atoll/image";
inline constexpr const char* kToolboxFile = "/run/atoll/toolbox";
// Whose runsc is compiled from its module. An older one mounts no second image.
inline constexpr const char* kModuleFile = "/usr/lib/atoll/go-program";
inline constexpr const char* kSudoFile = "/run/atoll/bin/sudo";
inline constexpr const char* kRunsc = "/usr/bin/runsc";

// How the program is called that becomes the sentry, and the one that is process 1 inside.
inline constexpr const char* kSentryRole = "sentry";
inline constexpr const char* kGuestRole = "sentry-guest";
// The same from a copy of its program that is the sentry's own: what runs from a file of the host
// cannot be laid down.
inline constexpr const char* kGuestCopyRole = "sentry-guest-copy";

// Descriptors of process 1 inside: the port is its standard input, the passage its standard output.
// Only those two find their other end again when a sentry begins with the memory of another.
inline constexpr int kGuestBirthFd = 3;
inline constexpr int kGuestSudoFd = 4;
inline constexpr int kGuestProgramFd = 5;

// The sentry itself: its code, its heap, what it keeps of files; and room for what programs take
// between two looks of the agent at their memory.
inline constexpr uint64_t kSentryMemoryBytes = 192ull << 20;
// Of the layer, beside what programs may write: our program, and what the pool itself needs.
inline constexpr uint64_t kSentryDiskBytes = 64ull << 20;
// Threads of its own, and some for each that programs have: it keeps those of ended ones for a
// while.
inline constexpr uint32_t kSentryPids = 512;
inline constexpr uint32_t kSentryPidsEach = 8;
inline constexpr uint32_t kSentryOpenFiles = 4096;

// Where process 1 inside finds the toolbox, if there is one.
inline constexpr const char* kGuestToolbox = "/run/toolbox";

// config.json: the image read-only as root, a layer of so many bytes at /tmp, the toolbox if it has
// one, nothing else.
enum class Toolbox : unsigned char { kNone, kMounted };
std::string sentry_configuration(const agent::GuestLimits& limits, Toolbox toolbox);

// Descriptors that it is started with, by the numbers that they have.
struct SentryFds {
  int configuration, control, started, image, layer, program, birth, sudo, copied_program;
  int input, output, error;  // of process 1 inside
  std::vector<int> files;    // of kKeptFiles, or none
  int toolbox = -1;          // or none
};
std::vector<std::string> sentry_command(const SentryFds& fds, const agent::GuestLimits& limits);

// What it is told on its control socket, in this order: there is a loopback, with the sandbox's own
// address, at which every address there is counts as local; begin.
// kWhenRestored: for one that begins with the memory of another, in which links are not.
enum class Loopback : unsigned char { kNow, kWhenRestored };
std::string loopback_call(Loopback loopback);
std::string begin_call();
// At any time after that: the files of the layer are written to kKeptFiles, lent with it.
std::string keep_files_call();
// The last: all that it is, is written to a file that is lent with it, and it ends.
std::string lay_down_call();
// In place of the second: it begins with what is in such a file.
std::string restore_call();
// Whether the answer to one says that it was done.
bool is_success(const std::string& answer);

}  // namespace atl::gvisor
