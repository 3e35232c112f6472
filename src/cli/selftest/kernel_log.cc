#include "cli/selftest/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

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

}  // namespace

bool is_complaint(std::string_view message) {
  if (message.starts_with(kOfAProgram)) return false;
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return message.find(sign) != message.npos; });
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
    std::string_view text(record, static_cast<size_t>(length));
    size_t begin = text.find(';');
    if (begin == text.npos) continue;
    std::string_view message = text.substr(begin + 1, text.find('\n') - begin - 1);
    if (is_complaint(message)) complaints.push_back("kernel log: " + std::string(message));
  }
}

}  // namespace atl::cli::selftest
