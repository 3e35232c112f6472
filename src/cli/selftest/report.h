// Report: one line per victim while they run, then the count; or one JSON object at the end.
#pragma once

#include <string>

#include <boost/json/array.hpp>

#include "cli/command_line.h"
#include "cli/selftest/judgement.h"

namespace atl::cli::selftest {

inline constexpr int kExitHostChanged = 3;

class Report {
 public:
  explicit Report(Format format) : format_(format) {}

  void add(const Victim& victim, const std::string& user, const Judgement& judgement);
  // A finding that belongs to no single victim.
  void add_finding(Outcome outcome, const std::string& detail);
  // Prints the count. The exit code: 0 when every wall held and every victim was judged,
  // kExitHostChanged when nothing but the host's own changes speaks against that.
  int finish() const;

 private:
  int& count_of(Outcome outcome);

  Format format_;
  int held_ = 0;
  int broke_ = 0;
  int skipped_ = 0;
  int unjudged_ = 0;
  int host_changed_ = 0;
  boost::json::array rows_;
};

}  // namespace atl::cli::selftest
