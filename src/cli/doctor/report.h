// All findings together, what they mean for each driver, and how both are shown.
#pragma once

#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "cli/doctor/finding.h"

namespace atl::cli {

struct Driver {
  std::string name;
  FindingState usable;
  std::string reason;  // why not, or why it is not known
};

// Whether there is what gVisor and machines need beside a jail.
inline constexpr std::string_view kSentryFinding = "gvisor";
inline constexpr std::string_view kMachineFinding = "microvm";

// The jail is usable when every required finding is ok; the others when their image is there too.
std::vector<Driver> judge_drivers(const Findings& findings);

struct Report {
  Findings findings;
  std::vector<Driver> drivers;

  explicit Report(Findings all) : findings(std::move(all)), drivers(judge_drivers(findings)) {}
  bool jail_usable() const;
};

boost::json::object to_json(const Report& report);
// Drivers first, then what was found by class, last what to change.
std::string to_text(const Report& report);

}  // namespace atl::cli
