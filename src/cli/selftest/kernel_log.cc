#include "cli/selftest/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"

namespace atl::cli::selftest {
namespace {

// The kernel's own largest record, and room to spare.
constexpr size_t kMaxRecordBytes = 8192;
constexpr std::array<std::string_view, 11> kSigns = {
    "Oops",          "BUG:",       "WARNING: CPU", "WARNING: ", "Kernel panic",
    "kernel BUG",    "refcount_t", "KASAN",        "UBSAN",     "general protection fault",
    "request_module"};
// Of a program, not of the kernel: "traps: name[pid] general protection fault".
constexpr std::string_view kOfAProgram = "traps:";

// " at 12.345678 s" of the record's head "priority,number,microseconds,flags".
std::string stamp_of(std::string_view head) {
  for (int i = 0; i < 2; ++i) {
    size_t comma = head.find(',');
    if (comma == head.npos) return "";
    head.remove_prefix(comma + 1);
  }
  uint64_t microseconds = 0;
  auto parsed = std::from_chars(head.data(), head.data() + head.size(), microseconds);
  if (parsed.ec != std::errc()) return "";
  std::string fraction = std::to_string(1'000'000 + microseconds % 1'000'000).substr(1);
  return " at " + std::to_string(microseconds / 1'000'000) + "." + fraction + " s";
}

}  // namespace

bool is_complaint(std::string_view message) {
  if (message.starts_with(kOfAProgram)) return false;
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return message.find(sign) != message.npos; });
}

std::optional<std::string> complaint_in(std::string_view record) {
  size_t begin = record.find(';');
  if (begin == record.npos) return std::nullopt;
  std::string_view message = record.substr(begin + 1, record.find('\n') - begin - 1);
  if (!is_complaint(message)) return std::nullopt;
  return "kernel log" + stamp_of(record.substr(0, begin)) + ": " + std::string(message);
}

Result<KernelLog> KernelLog::open() {
  KernelLog log;
  ATOLL_TRY(log.fd_, open_file("/dev/kmsg", O_RDONLY | O_NONBLOCK));
  if (lseek(log.fd_.get(), 0, SEEK_END) < 0) return Error::system("seek in /dev/kmsg");
  return log;
}

std::vector<std::string> KernelLog::take_complaints() const {
  std::vector<std::string> complaints;
  char record[kMaxRecordBytes];
  while (true) {
    ssize_t length = read(fd_.get(), record, sizeof record);
    if (length < 0 && (errno == EPIPE || errno == EINTR)) continue;  // overwritten meanwhile
    if (length <= 0) return complaints;
    if (auto complaint = complaint_in({record, static_cast<size_t>(length)}))
      complaints.push_back(std::move(*complaint));
  }
}

}  // namespace atl::cli::selftest
