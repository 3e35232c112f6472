// LogFile: where a supervised process writes when nobody looks at a terminal. The writer holds the
// descriptor and must go on writing when the supervisor dies, so the file is cut in place: what it
// holds is copied to <path>.1 and it is emptied. Lines written in that moment are lost.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli {

class LogFile {
 public:
  static constexpr off_t kLimitBytes = 16 * 1024 * 1024;

  static Result<LogFile> open(std::string path, off_t limit_bytes = kLimitBytes);
  int fd() const { return fd_.get(); }
  // Does nothing while the file is within its limit.
  Result<void> rotate();

 private:
  LogFile(std::string path, off_t limit_bytes, Fd fd)
      : path_(std::move(path)), limit_bytes_(limit_bytes), fd_(std::move(fd)) {}
  std::string path_;
  off_t limit_bytes_;
  Fd fd_;
};

// The end of a log, for showing why a start failed.
std::string last_lines(const std::string& path, size_t count);

}  // namespace atl::cli
