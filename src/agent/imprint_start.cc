#include "agent/imprint_start.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cstring>
#include <span>

#include "agent/imprint.h"
#include "agent/process_start.h"

// Everything here runs in a process that is about to lose all its memory. The calls that replace it
// are listed first, in memory that stays, and then made one after the other by a function that was
// copied there and uses nothing else.

extern "C" const char __start_atoll_imprint[], __stop_atoll_imprint[];

namespace atl::agent {
namespace {

constexpr uint64_t kAddressEnd = 0x7ffffffff000;
constexpr uint64_t kLowestAddress = kPageBytes;
constexpr uint64_t kMaxCalls = 16 * 1024;
constexpr uint64_t kStackBytes = 16 * 1024;
constexpr uint64_t kRedZoneBytes = 128;
constexpr long kAnyResult = -1;
constexpr long kStoreThreadNumber = -1;  // no system call, but where its number is to be stored
constexpr int kMaxPlaces = 64;
constexpr unsigned kRseqSignature = 0x53053053;
constexpr unsigned long kRseqBytes = 32;

struct Call {
  long number;
  unsigned long arguments[6];
  long expected;
};

struct Index {
  ImprintHeader header;
  char rest[kMaxIndexBytes];

  std::span<const ImprintSegment> segments() const {
    return {reinterpret_cast<const ImprintSegment*>(rest), header.segment_count};
  }
  const char* paths() const { return rest + header.segment_count * sizeof(ImprintSegment); }
};

struct Table {
  Index index;  // calls refer to it
  ucontext_t frame;
  uint64_t frame_at;
  int report;
  int thread_number;
  uint64_t count;
  Call calls[kMaxCalls];
  alignas(64) char stack[kStackBytes];
};

// The memory that stays until the program goes on; all but the code goes even then.
struct Room {
  alignas(kPageBytes) char code[kPageBytes];
  alignas(kPageBytes) Table table;
};

[[gnu::always_inline]] inline long call_kernel(long number, const unsigned long* a) {
  long result;
  register unsigned long r10 asm("r10") = a[3];
  register unsigned long r8 asm("r8") = a[4];
  register unsigned long r9 asm("r9") = a[5];
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Copied to where it runs, so it refers to nothing but its argument. The frame that the kernel
// takes the registers from lies below the stack of the program, in what its own calls may use.
#ifdef __clang__
#define ATOLL_NO_SANITIZERS no_sanitize("address", "undefined", "coverage")
#else
#define ATOLL_NO_SANITIZERS no_sanitize("address", "undefined")
#endif
#define ATOLL_PLAIN_CODE                                                               \
  __attribute__((section("atoll_imprint"), noinline, used, retain, no_stack_protector, \
                 ATOLL_NO_SANITIZERS))
ATOLL_PLAIN_CODE void make_calls(Table* table) {
  for (uint64_t i = 0; i < table->count; ++i) {
    const Call& call = table->calls[i];
    if (call.number == kStoreThreadNumber) {
      *reinterpret_cast<volatile int*>(call.arguments[0]) = table->thread_number;
      continue;
    }
    long result = call_kernel(call.number, call.arguments);
    bool failed = result < 0 && result > -static_cast<long>(kPageBytes);
    if (!failed && (call.expected == kAnyResult || result == call.expected)) continue;
    StartReport report = {StartStep::kImprint, static_cast<int32_t>(failed ? -result : EPROTO)};
    unsigned long write_it[6] = {static_cast<unsigned long>(table->report),
                                 reinterpret_cast<unsigned long>(&report), sizeof report};
    call_kernel(SYS_write, write_it);
    unsigned long end[6] = {127};
    call_kernel(SYS_exit_group, end);
  }
  void* to = reinterpret_cast<void*>(table->frame_at);
  const void* from = &table->frame;
  uint64_t count = sizeof table->frame;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  register uint64_t frame asm("r12") = table->frame_at;
  // Unmaps the table and the stack under us; from there on there are only registers.
  asm volatile(
      "syscall\n\t"
      "mov %[frame], %%rsp\n\t"
      "mov %[go_on], %%eax\n\t"
      "syscall\n\t"
      "hlt"
      :
      : "a"(SYS_munmap), "D"(table),
        "S"(sizeof *table), [frame] "r"(frame), [go_on] "i"(SYS_rt_sigreturn)
      : "rcx", "r11", "memory");
  __builtin_unreachable();
}

int fail_with(int system_errno) {
  errno = system_errno;
  return -1;
}

int read_exactly(int file, void* bytes, size_t count, off_t offset) {
  ssize_t done = pread(file, bytes, count, offset);
  if (done < 0) return -1;
  return static_cast<size_t>(done) == count ? 0 : fail_with(ENOEXEC);
}

bool is_sound(const ImprintSegment& segment, const ImprintHeader& header) {
  bool aligned = (segment.start | segment.end | segment.offset) % kPageBytes == 0;
  bool in_place = segment.start >= kLowestAddress && segment.start < segment.end &&
                  segment.end <= kAddressEnd && segment.kind <= SegmentKind::kCopy;
  bool named = segment.kind == SegmentKind::kFile || segment.kind == SegmentKind::kSharedFile;
  return aligned && in_place && (!named || segment.path < header.path_bytes);
}

int read_index(int imprint, Index& index) {
  const ImprintHeader& header = index.header;
  if (read_exactly(imprint, &index.header, sizeof index.header, 0) != 0) return -1;
  if (header.magic != kImprintMagic || header.segment_count > kMaxSegments ||
      header.path_bytes == 0 || header.path_bytes > kMaxIndexBytes)
    return fail_with(ENOEXEC);
  uint64_t rest = header.segment_count * sizeof(ImprintSegment) + header.path_bytes;
  if (rest > sizeof index.rest) return fail_with(ENOEXEC);
  if (read_exactly(imprint, index.rest, rest, sizeof header) != 0) return -1;
  if (index.rest[rest - 1] != '\0') return fail_with(ENOEXEC);
  for (const ImprintSegment& segment : index.segments())
    if (!is_sound(segment, header)) return fail_with(ENOEXEC);
  return 0;
}

bool overlaps(const ImprintRange& one, const ImprintRange& other) {
  return one.start < other.end && other.start < one.end;
}

// Where this process has what lies at `part` in the program.
ImprintRange own_part(const ImprintHeader& header, const ImprintRange& part) {
  uint64_t own = getauxval(AT_SYSINFO_EHDR);
  return {own + (part.start - header.vdso), own + (part.end - header.vdso)};
}

bool is_free(const Index& index, const ImprintRange& range) {
  for (const ImprintSegment& segment : index.segments())
    if (overlaps(range, {segment.start, segment.end})) return false;
  for (const ImprintRange& part : index.header.vdso_parts)
    if (part.end != 0 && overlaps(range, part)) return false;
  return true;
}

// Where the program has nothing; the kernel proposes another place while the last one is taken.
Room* find_room(int imprint) {
  for (int i = 0; i < kMaxPlaces; ++i) {
    void* place =
        mmap(nullptr, sizeof(Room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return nullptr;
    auto* room = static_cast<Room*>(place);
    if (read_index(imprint, room->table.index) != 0) return nullptr;
    auto start = reinterpret_cast<uint64_t>(place);
    if (is_free(room->table.index, {start, start + sizeof(Room)})) return room;
  }
  errno = ENOMEM;
  return nullptr;
}

class CallList {
 public:
  explicit CallList(Table& table) : table_(table) {}

  template <typename... Arguments>
  void add(long number, Arguments... arguments) {
    expect(kAnyResult, number, arguments...);
  }
  template <typename... Arguments>
  void expect(long expected, long number, Arguments... arguments) {
    if (table_.count == kMaxCalls) {
      full_ = true;
      return;
    }
    table_.calls[table_.count++] = {number, {(unsigned long)(arguments)...}, expected};
  }
  bool full() const { return full_; }

 private:
  Table& table_;
  bool full_ = false;
};

// The parts keep their distances, which the code in them relies on.
void move_vdso(const Index& index, CallList& calls) {
  for (const ImprintRange& part : index.header.vdso_parts) {
    ImprintRange own = own_part(index.header, part);
    if (part.end == 0 || own.start == part.start) continue;
    uint64_t bytes = part.end - part.start;
    calls.expect(static_cast<long>(part.start), SYS_mremap, own.start, bytes, bytes,
                 MREMAP_MAYMOVE | MREMAP_FIXED, part.start);
  }
}

// All but the room and the vdso.
void unmap_everything(const Index& index, const ImprintRange& room, CallList& calls) {
  uint64_t from = kLowestAddress;
  while (from < kAddressEnd) {
    ImprintRange next = {kAddressEnd, kAddressEnd};
    auto consider = [&](const ImprintRange& kept) {
      if (kept.end != 0 && kept.start >= from && kept.start < next.start) next = kept;
    };
    consider(room);
    for (const ImprintRange& part : index.header.vdso_parts) consider(part);
    if (from < next.start) calls.add(SYS_munmap, from, next.start - from);
    from = next.end;
  }
}

void map_file(const ImprintSegment& segment, int file, CallList& calls) {
  unsigned long flags = segment.kind == SegmentKind::kSharedFile ? MAP_SHARED : MAP_PRIVATE;
  calls.expect(static_cast<long>(segment.start), SYS_mmap, segment.start,
               segment.end - segment.start, segment.protection, flags | MAP_FIXED, file,
               segment.offset);
}

void map_segment(const ImprintSegment& segment, int imprint, CallList& calls) {
  uint64_t bytes = segment.end - segment.start;
  bool pages = segment.kind == SegmentKind::kPages;
  unsigned long flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  if (!pages) flags |= MAP_ANONYMOUS;
  if (segment.grows_down) flags |= MAP_GROWSDOWN | MAP_STACK;
  calls.expect(static_cast<long>(segment.start), SYS_mmap, segment.start, bytes, segment.protection,
               flags, pages ? imprint : -1, pages ? segment.offset : 0);
  if (segment.kind == SegmentKind::kCopy)
    calls.expect(static_cast<long>(bytes), SYS_pread64, imprint, segment.start, bytes,
                 segment.offset);
  // What was anonymous may be enlarged by mremap, and would then go on with other bytes of the
  // file, or with none. Sealed, it is left where it is and a copy is made.
  if (pages && segment.was_anonymous) calls.add(kMsealCall, segment.start, bytes, 0);
}

// `file` is the number that the next descriptor gets.
void map_segments(const Index& index, int imprint, int file, CallList& calls) {
  const char* open_path = nullptr;
  for (const ImprintSegment& segment : index.segments()) {
    bool named = segment.kind == SegmentKind::kFile || segment.kind == SegmentKind::kSharedFile;
    if (!named) {
      map_segment(segment, imprint, calls);
      continue;
    }
    const char* path = index.paths() + segment.path;
    if (path != open_path) {
      if (open_path != nullptr) calls.add(SYS_close, file);
      calls.expect(file, SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
      open_path = path;
    }
    map_file(segment, file, calls);
  }
  if (open_path != nullptr) calls.add(SYS_close, file);
}

// What the kernel knows of the thread besides its memory.
void restore_thread(const Index& index, CallList& calls) {
  const ImprintHeader& header = index.header;
  calls.add(SYS_arch_prctl, ARCH_SET_FS, header.registers.fs_base);
  if (header.registers.gs_base != 0)
    calls.add(SYS_arch_prctl, ARCH_SET_GS, header.registers.gs_base);
  if (header.tid_address != 0) {
    calls.add(SYS_set_tid_address, header.tid_address);
    calls.add(kStoreThreadNumber, header.tid_address);
  }
  if (header.robust_list != 0)
    calls.add(SYS_set_robust_list, header.robust_list, header.robust_list_bytes);
  if (header.rseq != 0)
    calls.add(SYS_rseq, header.rseq, header.rseq_bytes, 0, header.rseq_signature);
  for (int i = 0; i < kSignalCount; ++i) {
    const ImprintAction& action = header.actions[i];
    if (action.handler == 0) continue;
    calls.add(SYS_rt_sigaction, i + 1, &action, 0, sizeof action.mask);
  }
  calls.add(SYS_prctl, PR_SET_NAME, header.name);
  // As after an execve: the memory of the agent's binary has gone.
  calls.add(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void leave_own_rseq(CallList& calls) {
  if (__rseq_size == 0) return;
  auto own = reinterpret_cast<uint64_t>(__builtin_thread_pointer()) +
             static_cast<uint64_t>(static_cast<int64_t>(__rseq_offset));
  calls.add(SYS_rseq, own, kRseqBytes, RSEQ_FLAG_UNREGISTER, kRseqSignature);
}

// The system call that the program waits in is made again.
void fill_frame(const ImprintHeader& header, Table& table) {
  const user_regs_struct& from = header.registers;
  ucontext_t& frame = table.frame;
  greg_t* to = frame.uc_mcontext.gregs;
  struct {
    int to;
    unsigned long long value;
  } const values[] = {{REG_R8, from.r8},      {REG_R9, from.r9},        {REG_R10, from.r10},
                      {REG_R11, from.r11},    {REG_R12, from.r12},      {REG_R13, from.r13},
                      {REG_R14, from.r14},    {REG_R15, from.r15},      {REG_RDI, from.rdi},
                      {REG_RSI, from.rsi},    {REG_RBP, from.rbp},      {REG_RBX, from.rbx},
                      {REG_RDX, from.rdx},    {REG_RCX, from.rcx},      {REG_RSP, from.rsp},
                      {REG_EFL, from.eflags}, {REG_RAX, from.orig_rax}, {REG_RIP, from.rip - 2}};
  for (const auto& value : values) to[value.to] = static_cast<greg_t>(value.value);
  to[REG_CSGSFS] = static_cast<greg_t>(from.cs | from.ss << 48);
  frame.uc_flags = 0x6;  // the stack segment is given, and to be taken as it is
  frame.uc_stack.ss_sp = reinterpret_cast<void*>(header.other_stack);
  frame.uc_stack.ss_size = header.other_stack_bytes;
  frame.uc_stack.ss_flags = static_cast<int>(header.other_stack_flags);
  std::memcpy(&frame.uc_sigmask, &header.signal_mask, sizeof header.signal_mask);
  table.frame_at = (from.rsp - kRedZoneBytes - sizeof frame) / 64 * 64;
}

[[noreturn]] void jump(Room& room) {
  char* stack = room.table.stack + kStackBytes;
  asm volatile(
      "mov %[stack], %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "call *%[code]\n\t"
      "hlt"
      :
      : [stack] "r"(stack), [code] "r"(room.code), "D"(&room.table)
      : "memory");
  __builtin_unreachable();
}

// The number that the next descriptor gets.
int next_descriptor(int any) {
  int next = fcntl(any, F_DUPFD_CLOEXEC, 0);
  if (next >= 0) close(next);
  return next;
}

}  // namespace

int set_memory_marks(int imprint) {
  static ImprintHeader header;
  if (read_exactly(imprint, &header, sizeof header, 0) != 0) return -1;
  if (header.auxiliary_words > kMaxAuxiliaryWords) return fail_with(ENOEXEC);
  prctl_mm_map map = {};
  static_assert(sizeof header.marks == offsetof(prctl_mm_map, auxv));
  std::memcpy(&map, header.marks, sizeof header.marks);
  map.auxv = reinterpret_cast<__u64*>(header.auxiliary);
  map.auxv_size = static_cast<__u32>(header.auxiliary_words * sizeof header.auxiliary[0]);
  map.exe_fd = ~0u;
  return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

int become_imprint(int imprint, int report, int control) {
  Room* room = find_room(imprint);
  if (room == nullptr) return -1;
  auto code_bytes = static_cast<size_t>(__stop_atoll_imprint - __start_atoll_imprint);
  if (code_bytes > sizeof room->code) return fail_with(E2BIG);
  std::memcpy(room->code, __start_atoll_imprint, code_bytes);
  if (mprotect(room->code, sizeof room->code, PROT_READ | PROT_EXEC) != 0) return -1;
  int file = next_descriptor(imprint);
  if (file < 0) return -1;
  Table& table = room->table;
  table.report = report;
  table.thread_number = static_cast<int>(syscall(SYS_gettid));
  auto start = reinterpret_cast<uint64_t>(room);
  CallList calls(table);
  leave_own_rseq(calls);
  move_vdso(table.index, calls);
  unmap_everything(table.index, {start, start + sizeof *room}, calls);
  map_segments(table.index, imprint, file, calls);
  restore_thread(table.index, calls);
  calls.add(SYS_close_range, control + 1, ~0u, 0);
  // The report last: its end says that the program runs.
  calls.add(SYS_close_range, STDERR_FILENO + 1, control - 1, 0);
  if (calls.full()) return fail_with(E2BIG);
  fill_frame(table.index.header, table);
  jump(*room);
}

}  // namespace atl::agent
