// ImprintFile: the imprint of a program (agent/imprint.h) in memory of ours, filled once and then
// sealed, so that no sandbox that gets it can change what the next one gets. Nothing here looks at
// the bytes: they are as hostile as the program that they come from.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::isolate {

class ImprintFile {
 public:
  static Result<ImprintFile> create();

  // kExhausted beyond what an imprint may have.
  Result<void> append(std::string_view bytes);
  Result<void> seal();

  int fd() const { return memory_.get(); }
  uint64_t bytes() const { return bytes_; }

 private:
  explicit ImprintFile(Fd memory) : memory_(std::move(memory)) {}
  Fd memory_;
  uint64_t bytes_ = 0;
};

}  // namespace atl::isolate
