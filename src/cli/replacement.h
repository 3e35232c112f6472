// Replacement: what became of the wish to run the programs that are installed now, as the
// supervisor leaves it in a file for `atoll restart` to read.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::cli {

struct ReplacedProgram {
  std::string name;
  std::string before;  // what it says its release is; empty: it did not run
  std::string after;
  pid_t pid = 0;  // of the process that runs now
};

struct Replacement {
  enum class Outcome : unsigned char {
    kDone,
    kRefused,   // nothing was touched
    kWentBack,  // the programs of before run again
    kNotReady,  // neither those installed now nor those of before became ready
  };
  Outcome outcome = Outcome::kDone;
  std::string failure;  // why it is not kDone
  std::vector<ReplacedProgram> programs;
  std::chrono::milliseconds unavailable{0};  // from the end of the first to ready again
};

std::string_view outcome_name(Replacement::Outcome outcome);

std::string encode(const Replacement& replacement);
Result<Replacement> decode_replacement(std::string_view text);

}  // namespace atl::cli
