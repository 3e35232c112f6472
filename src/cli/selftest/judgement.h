// What the end of a victim's exec says about the wall. The host is asked separately: a victim that
// says it failed may still have changed something.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "cli/selftest/victim_list.h"

namespace atl::cli::selftest {

enum class Outcome : unsigned char {
  kHeld,
  kBroke,
  kSkipped,      // it could not be tried here, and says why
  kUnjudged,     // it ended in a way that proves nothing
  kHostChanged,  // the host changed once while it ran, and not when it ran again
};
std::string_view outcome_name(Outcome outcome);

struct Judgement {
  Outcome outcome = Outcome::kUnjudged;
  std::string detail;
  std::string verdict;
};

// Adds what speaks against the wall.
void call_broken(Judgement& judgement, const std::string& change);

// `exec` is the API's answer for an exec that has ended.
Result<Judgement> judge(const Victim& victim, const boost::json::object& exec);

}  // namespace atl::cli::selftest
