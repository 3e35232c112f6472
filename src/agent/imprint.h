// An imprint: the memory and the registers of a program that waits at its control socket, taken
// once (imprint_taker.h), from which any number of programs begin (imprint_start.h) as if each had
// come so far by itself. What they have not changed they share, copy-on-write, by mapping the same
// sealed file.
//
// The bytes are a program's own and as hostile: they are read only by processes that already are
// behind all walls of the program that they become.
//
//   ImprintHeader · ImprintSegment × segment_count · paths · up to a whole page · pages
#pragma once

#include <sys/user.h>

#include <cstdint>

namespace atl::agent {

inline constexpr uint64_t kImprintMagic = 0x746e697270746c61;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint32_t kMaxSegments = 8192;
// Of all that is before the pages.
inline constexpr uint64_t kMaxIndexBytes = 512 * 1024;
inline constexpr uint64_t kMaxImprintBytes = 1ull << 30;
inline constexpr int kSignalCount = 64;
inline constexpr long kMsealCall = 462;  // newer than the headers of some C libraries
inline constexpr int kMaxAuxiliaryWords = 64;
inline constexpr int kMaxVdsoParts = 4;

enum class SegmentKind : uint8_t {
  kZero,        // no byte of it was ever written
  kFile,        // private, of the file at `path`
  kSharedFile,  // the same, shared; never writable
  kPages,       // of the imprint
  kCopy,        // of the imprint, but into memory of its own: what the kernel grows
};

struct ImprintSegment {
  uint64_t start, end;
  uint64_t offset;  // in the file, or in the imprint
  uint32_t path;    // where it begins among the paths
  uint8_t protection;
  SegmentKind kind;
  uint8_t grows_down;
  uint8_t was_anonymous;  // of kPages
};

// As the kernel has it.
struct ImprintAction {
  uint64_t handler, flags, restorer, mask;
};

struct ImprintRange {
  uint64_t start, end;
};

// The numbers of prctl_mm_map, in its order.
enum MemoryMark : uint8_t {
  kStartCode,
  kEndCode,
  kStartData,
  kEndData,
  kStartBreak,
  kBreak,
  kStartStack,
  kArgumentsStart,
  kArgumentsEnd,
  kEnvironmentStart,
  kEnvironmentEnd,
  kMemoryMarks,
};

struct ImprintHeader {
  uint64_t magic;
  uint32_t segment_count;
  uint32_t path_bytes;
  uint64_t total_bytes;
  user_regs_struct registers;  // at the system call that it waits in, which is made again
  uint64_t signal_mask;
  ImprintAction actions[kSignalCount];
  uint64_t other_stack, other_stack_bytes, other_stack_flags;  // of sigaltstack
  uint64_t tid_address;
  uint64_t robust_list, robust_list_bytes;
  uint64_t rseq, rseq_bytes, rseq_signature;
  uint64_t vdso;
  ImprintRange vdso_parts[kMaxVdsoParts];  // [vvar…] and [vdso]
  uint64_t marks[kMemoryMarks];
  uint64_t auxiliary_words;
  uint64_t auxiliary[kMaxAuxiliaryWords];
  char name[16];
};

constexpr uint64_t whole_pages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace atl::agent
