// Progress: one line on a terminal about a transfer that takes a while. Nothing on anything else,
// and nothing when it was quick.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace atl::cli {

class Progress {
 public:
  // `what` is shown escaped; the total may be unknown.
  Progress(std::string what, std::optional<uint64_t> total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(uint64_t bytes);

 private:
  std::string what_;
  std::optional<uint64_t> total_bytes_;
  uint64_t done_bytes_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point next_;
  bool is_shown_ = false;
  bool is_terminal_;
};

// "plot.png  [=====>    ] 12.0 MiB of 24.0 MiB, 3.0 MiB/s"
std::string progress_line(const std::string& what, uint64_t done_bytes,
                          std::optional<uint64_t> total_bytes, double seconds);

}  // namespace atl::cli
