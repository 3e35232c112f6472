// One thing that was looked at on this host: what it is for, what was found, and what to do when it
// is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl::cli {

enum class FindingClass : unsigned char {
  kRequired,  // without it the jail is not usable
  kExtra,     // makes a sandbox better when it is there
  kAdvice,    // about the host; nothing in a sandbox depends on it
};
enum class FindingState : unsigned char {
  kOk,
  kMissing,
  kUnknown,  // could not be tried, mostly for want of root
};

std::string_view class_name(FindingClass value);
std::string_view state_name(FindingState value);

struct Finding {
  std::string name;  // "group.leaf" or one word; stable, programs may look for it
  FindingClass kind;
  FindingState state;
  std::string found;
  std::string remedy;  // a command, or the sentence that nothing can be done; empty when ok
};

using Findings = std::vector<Finding>;

inline constexpr const char* kOtherKernel = "nothing can be done on this kernel: boot another one";
inline constexpr const char* kAskAsRoot = "run `atoll doctor` as root";

}  // namespace atl::cli
