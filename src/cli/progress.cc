#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "cli/readable.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kQuickTime{500};
constexpr milliseconds kPause{100};
constexpr size_t kBarColumns = 20;
constexpr size_t kMaxNameBytes = 30;

}  // namespace

std::string progress_line(const std::string& what, uint64_t done_bytes,
                          std::optional<uint64_t> total_bytes, double seconds) {
  std::string line = what + "  ";
  if (total_bytes && *total_bytes > 0) {
    uint64_t shown = std::min(done_bytes, *total_bytes);
    double part = static_cast<double>(shown) / static_cast<double>(*total_bytes);
    size_t columns = static_cast<size_t>(part * kBarColumns);
    line += "[" + std::string(columns, '=') + std::string(kBarColumns - columns, ' ') + "] ";
  }
  line += readable_size(done_bytes);
  if (total_bytes) line += " of " + readable_size(*total_bytes);
  double rate = static_cast<double>(done_bytes) / std::max(seconds, 0.001);
  return line + ", " + readable_size(static_cast<uint64_t>(rate)) + "/s";
}

Progress::Progress(std::string what, std::optional<uint64_t> total_bytes)
    : what_(escape_line(what).substr(0, kMaxNameBytes)),
      total_bytes_(total_bytes),
      begin_(steady_clock::now()),
      next_(begin_ + kQuickTime),
      is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (is_shown_) fputs("\r\x1b[K", stderr);
}

void Progress::add(uint64_t bytes) {
  done_bytes_ += bytes;
  auto now = steady_clock::now();
  if (!is_terminal_ || now < next_) return;
  next_ = now + kPause;
  is_shown_ = true;
  double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string line = progress_line(what_, done_bytes_, total_bytes_, seconds);
  fprintf(stderr, "\r%s\x1b[K", line.c_str());
}

}  // namespace atl::cli
