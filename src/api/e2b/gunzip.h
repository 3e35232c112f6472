// Gunzip: a gzip stream as it comes, taken apart. What it grows to is the caller's to bound: each
// call gives at most kMostAtOnce bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace atl::api::e2b {

class Gunzip {
 public:
  static constexpr size_t kMostAtOnce = 64 * 1024;

  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Takes from the beginning of `bytes` and gives what they stand for; empty when all of `bytes`
  // was taken and nothing came of it. kInvalid: it is no gzip stream, or goes on after its end.
  Result<std::string> take(std::string_view& bytes);
  bool finished() const { return finished_; }

 private:
  std::unique_ptr<z_stream_s> stream_;
  bool finished_ = false;
};

}  // namespace atl::api::e2b
