#include "agent/imprint_taker.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <vector>

#include "agent/imprint.h"
#include "base/file.h"
#include "linux/process_maps.h"
#include "linux/traced_process.h"

namespace atl::agent {
namespace {

using linux::MappedArea;
using linux::TracedProcess;

constexpr size_t kMaxMapsBytes = 2 * 1024 * 1024;
constexpr uint64_t kMaxAreaBytes = 16ull << 30;
// Pages that were not written are kept with those around them, if so few: each piece is one more
// mapping.
constexpr uint64_t kMaxGapPages = 16;
constexpr size_t kWriteBytes = 256 * 1024;
constexpr uint64_t kScratchDistance = 16 * 1024;  // below the stack that is in use
constexpr int kPolls = 1000;
constexpr useconds_t kPollMicros = 2000;

Error cannot(std::string_view what) {
  return Error(Code::kUnsupported, std::string(what), EOPNOTSUPP);
}

struct Taken {
  ImprintHeader header = {};
  std::vector<ImprintSegment> segments = {};
  std::string paths = {};
};

class Taker {
 public:
  Taker(pid_t pid, int control, const TracedProcess& process)
      : proc_("/proc/" + std::to_string(pid)), control_(control), process_(process) {}

  Result<void> look();
  Result<void> write(int output);

 private:
  Result<void> check_state();
  Result<void> check_descriptors();
  Result<void> ask_thread();
  Result<void> ask_signals();
  Result<void> read_marks();
  Result<void> read_areas();
  Result<void> add_area(const MappedArea& area);
  Result<void> check_allocator(const MappedArea& area);
  void add_vdso(const MappedArea& area);
  Result<void> add_written_pages(const MappedArea& area);
  void place_pages();
  uint32_t path_of(const std::string& name);
  Result<uint64_t> peek(uint64_t address);

  const std::string proc_;
  const int control_;
  TracedProcess process_;
  Fd memory_, page_map_;
  std::map<std::string, uint32_t> path_numbers_;
  Taken taken_;
};

Result<int> count_entries(const std::string& directory) {
  DIR* opened = opendir(directory.c_str());
  if (opened == nullptr) return Error::system("open " + directory);
  int count = 0;
  while (const dirent* entry = readdir(opened))
    if (entry->d_name[0] != '.') ++count;
  closedir(opened);
  return count;
}

// It has said that it waits before it does.
Result<void> await_waiting(pid_t pid, int control) {
  std::string path = "/proc/" + std::to_string(pid) + "/syscall";
  char waits[32];
  snprintf(waits, sizeof waits, "%d 0x%x ", static_cast<int>(SYS_read), control);
  for (int i = 0; i < kPolls; ++i) {
    ATOLL_TRY(std::string call, read_file(path));
    if (call.starts_with(waits)) return {};
    usleep(kPollMicros);
  }
  return cannot("the program does not wait at its control socket");
}

Result<void> Taker::check_state() {
  if (syscall(kMsealCall, 0, 0, 0) != 0)
    return cannot("the kernel cannot seal memory (mseal, Linux 6.10)");
  const user_regs_struct& registers = process_.registers();
  bool waits = registers.orig_rax == SYS_read && registers.rdi == static_cast<unsigned>(control_);
  if (!waits) return cannot("the program does not wait at its control socket");
  ATOLL_TRY(int threads, count_entries(proc_ + "/task"));
  if (threads != 1) return cannot("there are " + std::to_string(threads) + " threads");
  auto timers = read_file(proc_ + "/timers");
  if (timers.ok() && !timers->empty()) return cannot("there are timers");
  return check_descriptors();
}

Result<void> Taker::check_descriptors() {
  ATOLL_TRY(int count, count_entries(proc_ + "/fd"));
  // The standard streams and the control socket, which each program gets anew.
  if (count > 4) return cannot("a module keeps a descriptor open");
  for (int number : {0, 1, 2, control_}) {
    std::string path = proc_ + "/fd/" + std::to_string(number);
    char target[8];
    if (readlink(path.c_str(), target, sizeof target) < 0)
      return cannot("a standard stream is closed");
  }
  return {};
}

Result<uint64_t> Taker::peek(uint64_t address) {
  uint64_t word = 0;
  if (pread(memory_.get(), &word, sizeof word, static_cast<off_t>(address)) != sizeof word)
    return Error::system("read the program's memory");
  return word;
}

Result<void> Taker::ask_thread() {
  ImprintHeader& header = taken_.header;
  header.registers = process_.registers();
  ATOLL_TRY(header.signal_mask, process_.signal_mask());
  ATOLL_TRY(auto sequence, process_.restartable_sequence());
  header.rseq = sequence.address;
  header.rseq_bytes = sequence.bytes;
  header.rseq_signature = sequence.signature;
  uint64_t scratch = (header.registers.rsp - kScratchDistance) / 64 * 64;
  ATOLL_TRY_VOID(process_.call({SYS_prctl, PR_GET_TID_ADDRESS, scratch}));
  ATOLL_TRY(header.tid_address, peek(scratch));
  ATOLL_TRY_VOID(process_.call({SYS_get_robust_list, 0, scratch, scratch + 8}));
  ATOLL_TRY(header.robust_list, peek(scratch));
  ATOLL_TRY(header.robust_list_bytes, peek(scratch + 8));
  ATOLL_TRY(header.marks[kBreak], process_.call({SYS_brk, 0}));
  ATOLL_TRY_VOID(process_.call({SYS_sigaltstack, 0, scratch}));
  ATOLL_TRY(header.other_stack, peek(scratch));
  ATOLL_TRY(header.other_stack_flags, peek(scratch + 8));
  header.other_stack_flags &= 0xffffffff;
  ATOLL_TRY(header.other_stack_bytes, peek(scratch + 16));
  return {};
}

Result<void> Taker::ask_signals() {
  uint64_t scratch = (taken_.header.registers.rsp - kScratchDistance) / 64 * 64;
  for (int i = 0; i < kSignalCount; ++i) {
    ImprintAction& action = taken_.header.actions[i];
    auto number = static_cast<uint64_t>(i) + 1;
    ATOLL_TRY_VOID(process_.call({SYS_rt_sigaction, number, 0, scratch, sizeof action.mask}));
    auto at = static_cast<off_t>(scratch);
    if (pread(memory_.get(), &action, sizeof action, at) != sizeof action)
      return Error::system("read a signal's action");
  }
  return {};
}

// Fields of /proc/<pid>/stat, by the numbers that proc_pid_stat(5) gives them.
Result<void> Taker::read_marks() {
  ATOLL_TRY(std::string text, read_file(proc_ + "/stat"));
  size_t behind_name = text.rfind(')');
  if (behind_name == text.npos) return Error(Code::kCorrupt, "cannot read stat");
  std::vector<uint64_t> fields(3, 0);  // so that the third is the first behind the name
  for (size_t at = behind_name + 2; at < text.size(); at = text.find(' ', at) + 1) {
    uint64_t value = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), value);
    fields.push_back(value);
    if (text.find(' ', at) == text.npos) break;
  }
  if (fields.size() < 52) return Error(Code::kCorrupt, "cannot read stat");
  auto& marks = taken_.header.marks;
  marks[kStartCode] = fields[26];
  marks[kEndCode] = fields[27];
  marks[kStartStack] = fields[28];
  marks[kStartData] = fields[45];
  marks[kEndData] = fields[46];
  marks[kStartBreak] = fields[47];
  for (int i = 0; i < 4; ++i) marks[kArgumentsStart + i] = fields[48 + static_cast<size_t>(i)];
  ATOLL_TRY(std::string auxiliary, read_file(proc_ + "/auxv"));
  if (auxiliary.size() > sizeof taken_.header.auxiliary)
    return Error(Code::kCorrupt, "the auxiliary vector is too long");
  std::memcpy(taken_.header.auxiliary, auxiliary.data(), auxiliary.size());
  taken_.header.auxiliary_words = auxiliary.size() / sizeof(uint64_t);
  ATOLL_TRY(std::string name, read_file(proc_ + "/comm"));
  name.copy(taken_.header.name, std::min(name.size() - 1, sizeof taken_.header.name - 1));
  return {};
}

uint32_t Taker::path_of(const std::string& name) {
  auto [found, added] = path_numbers_.try_emplace(name, static_cast<uint32_t>(taken_.paths.size()));
  if (added) taken_.paths.append(name.c_str(), name.size() + 1);
  return found->second;
}

Result<void> Taker::read_areas() {
  ATOLL_TRY(std::string text, read_file(proc_ + "/maps", kMaxMapsBytes));
  ATOLL_TRY(auto areas, linux::parse_maps(text));
  taken_.paths.push_back('\0');
  for (const MappedArea& area : areas) ATOLL_TRY_VOID(add_area(area));
  if (taken_.segments.size() > kMaxSegments) return cannot("its memory is in too many pieces");
  place_pages();
  return {};
}

void Taker::add_vdso(const MappedArea& area) {
  auto& parts = taken_.header.vdso_parts;
  auto free = std::find_if(std::begin(parts), std::end(parts),
                           [](const ImprintRange& part) { return part.end == 0; });
  if (free != std::end(parts)) *free = {area.start, area.end};
  if (area.name == "[vdso]") taken_.header.vdso = area.start;
}

// It takes memory for zero that it has given up (MADV_DONTNEED). Of a copy that would show again
// what the imprint has there, and calloc would give it out. The C library's allocator does not,
// but for the arenas of threads.
Result<void> Taker::check_allocator(const MappedArea& area) {
  constexpr std::string_view kMark = "<jemalloc>";
  constexpr uint64_t kOverlap = kMark.size() - 1;
  if ((area.protection & (PROT_READ | PROT_WRITE)) != PROT_READ) return {};
  std::string bytes(kWriteBytes, '\0');
  for (uint64_t at = area.start; at + kOverlap < area.end; at += kWriteBytes - kOverlap) {
    size_t count = std::min<uint64_t>(area.end - at, kWriteBytes);
    ssize_t done = pread(memory_.get(), bytes.data(), count, static_cast<off_t>(at));
    if (done <= 0) return {};  // beyond the end of the file
    if (std::string_view(bytes).substr(0, static_cast<size_t>(done)).find(kMark) != bytes.npos)
      return cannot("it has an allocator of its own: " + area.name);
  }
  return {};
}

Result<void> Taker::add_area(const MappedArea& area) {
  if (area.name == "[vsyscall]") return {};
  if (area.name == "[vdso]" || area.name.starts_with("[vvar")) {
    add_vdso(area);
    return {};
  }
  if (area.end - area.start > kMaxAreaBytes) return cannot("it has mapped very much memory");
  if (area.shared && (!area.is_of_file() || (area.protection & PROT_WRITE) != 0))
    return cannot("it shares memory");
  if (area.is_of_file() && area.name.ends_with(" (deleted)"))
    return cannot("it has mapped a file that is gone");
  // Stacks and arenas of threads are so; to give up and take up parts of them again fails on
  // memory that is sealed.
  if (!area.is_of_file() && area.protection == PROT_NONE)
    return cannot("it had threads, or reserves memory");
  ImprintSegment base = {.start = area.start,
                         .end = area.end,
                         .offset = area.offset,
                         .path = 0,
                         .protection = static_cast<uint8_t>(area.protection),
                         .kind = SegmentKind::kZero,
                         .grows_down = area.name == "[stack]",
                         .was_anonymous = 0};
  if (area.is_of_file()) {
    ATOLL_TRY_VOID(check_allocator(area));
    base.kind = area.shared ? SegmentKind::kSharedFile : SegmentKind::kFile;
    base.path = path_of(area.name);
  } else {
    base.offset = 0;
  }
  // What the kernel grows must stay one piece.
  if (base.grows_down) base.kind = SegmentKind::kCopy;
  taken_.segments.push_back(base);
  if (area.shared || base.grows_down) return {};
  return add_written_pages(area);
}

// Of a private area: what is in the page tables and not the file's, which the kernel tells apart
// also without a right to see where it is.
bool is_written(uint64_t entry) {
  constexpr uint64_t kPresent = 1ull << 63, kSwapped = 1ull << 62, kOfFile = 1ull << 61;
  return (entry & (kPresent | kSwapped)) != 0 && (entry & kOfFile) == 0;
}

Result<void> Taker::add_written_pages(const MappedArea& area) {
  uint64_t count = (area.end - area.start) / kPageBytes;
  std::vector<uint64_t> entries(count);
  size_t bytes = count * sizeof(uint64_t);
  auto at = static_cast<off_t>(area.start / kPageBytes * sizeof(uint64_t));
  if (pread(page_map_.get(), entries.data(), bytes, at) != static_cast<ssize_t>(bytes))
    return Error::system("read the page map");
  ImprintSegment run = taken_.segments.back();
  run.kind = SegmentKind::kPages;
  run.was_anonymous = !area.is_of_file();
  for (uint64_t i = 0; i < count; ++i) {
    if (!is_written(entries[i])) continue;
    uint64_t end = i + 1;
    for (uint64_t j = end; j < count && j - end <= kMaxGapPages; ++j)
      if (is_written(entries[j])) end = j + 1;
    run.start = area.start + i * kPageBytes;
    run.end = area.start + end * kPageBytes;
    taken_.segments.push_back(run);
    i = end - 1;
  }
  return {};
}

void Taker::place_pages() {
  ImprintHeader& header = taken_.header;
  header.magic = kImprintMagic;
  header.segment_count = static_cast<uint32_t>(taken_.segments.size());
  header.path_bytes = static_cast<uint32_t>(taken_.paths.size());
  uint64_t index = sizeof header + taken_.segments.size() * sizeof(ImprintSegment);
  uint64_t offset = whole_pages(index + taken_.paths.size());
  for (ImprintSegment& segment : taken_.segments) {
    if (segment.kind != SegmentKind::kPages && segment.kind != SegmentKind::kCopy) continue;
    segment.offset = offset;
    offset += segment.end - segment.start;
  }
  header.total_bytes = offset;
}

Result<void> Taker::look() {
  ATOLL_TRY_VOID(check_state());
  ATOLL_TRY(memory_, open_file(proc_ + "/mem", O_RDONLY));
  ATOLL_TRY(page_map_, open_file(proc_ + "/pagemap", O_RDONLY));
  ATOLL_TRY_VOID(ask_thread());
  ATOLL_TRY_VOID(ask_signals());
  ATOLL_TRY_VOID(read_marks());
  ATOLL_TRY_VOID(read_areas());
  uint64_t index = taken_.segments.size() * sizeof(ImprintSegment) + taken_.paths.size();
  if (index > kMaxIndexBytes || taken_.header.total_bytes > kMaxImprintBytes)
    return cannot("it has too much memory");
  return {};
}

Result<void> Taker::write(int output) {
  std::string index(reinterpret_cast<const char*>(&taken_.header), sizeof taken_.header);
  index.append(reinterpret_cast<const char*>(taken_.segments.data()),
               taken_.segments.size() * sizeof(ImprintSegment));
  index += taken_.paths;
  index.resize(whole_pages(index.size()));
  ATOLL_TRY_VOID(write_all(output, index));
  std::string buffer(kWriteBytes, '\0');
  for (const ImprintSegment& segment : taken_.segments) {
    if (segment.kind != SegmentKind::kPages && segment.kind != SegmentKind::kCopy) continue;
    for (uint64_t at = segment.start; at < segment.end;) {
      size_t count = std::min<uint64_t>(segment.end - at, kWriteBytes);
      ssize_t done = pread(memory_.get(), buffer.data(), count, static_cast<off_t>(at));
      if (done <= 0) return Error::system("read the program's memory");
      ATOLL_TRY_VOID(
          write_all(output, std::string_view(buffer).substr(0, static_cast<size_t>(done))));
      at += static_cast<uint64_t>(done);
    }
  }
  return {};
}

}  // namespace

Result<void> take_imprint(pid_t pid, int control, int output) {
  ATOLL_TRY_VOID(await_waiting(pid, control));
  ATOLL_TRY(TracedProcess process, TracedProcess::stop(pid));
  Taker taker(pid, control, process);
  ATOLL_TRY_VOID(taker.look());
  return taker.write(output);
}

}  // namespace atl::agent
