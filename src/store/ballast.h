// Ballast: room on a disk that is given up, a piece at a time, when the disk is full and something
// has to be written that makes room: the rows of what is deleted. A file of real blocks. One
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace atl::store {

inline constexpr uint64_t kBallastBytes = 32ull << 20;
inline constexpr uint64_t kBallastPieceBytes = 4ull << 20;

class Ballast {
 public:
  // Whole, where the disk has room to spare.
  static Result<Ballast> open(const std::string& path);

  // False: there is nothing left to give.
  bool give_up();
  // Makes it whole again if the disk has room to spare.
  void restore();
  uint64_t bytes() const { return bytes_; }

 private:
  Ballast(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Fd file_;
  std::string path_;
  uint64_t bytes_ = 0;
};

}  // namespace atl::store
