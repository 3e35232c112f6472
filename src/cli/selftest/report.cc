#include "cli/selftest/report.h"

#include <stdio.h>

#include <boost/json/serialize.hpp>

#include "cli/terminal.h"

namespace atl::cli::selftest {

namespace json = boost::json;

int& Report::count_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHeld:
      return held_;
    case Outcome::kBroke:
      return broke_;
    case Outcome::kSkipped:
      return skipped_;
    case Outcome::kHostChanged:
      return host_changed_;
    case Outcome::kUnjudged:
      return unjudged_;
  }
  return unjudged_;
}

void Report::add(const Victim& victim, const std::string& user, const Judgement& judgement) {
  ++count_of(judgement.outcome);
  // Bytes of a hostile program.
  std::string detail = escape_line(judgement.detail);
  std::string name(outcome_name(judgement.outcome));
  if (format_ == Format::kText) {
    printf("%-8s  %-6s  %-24s %-4s  %s\n", name.c_str(), victim.id.c_str(), victim.name.c_str(),
           user.c_str(), detail.c_str());
    fflush(stdout);
  }
  if (judgement.outcome == Outcome::kBroke) name = "broke";
  rows_.push_back({{"name", victim.name},
                   {"id", victim.id},
                   {"user", user},
                   {"outcome", name},
                   {"detail", detail},
                   {"verdict", escape_line(judgement.verdict)}});
}

void Report::add_finding(Outcome outcome, const std::string& detail) {
  Victim host;
  host.name = "host";
  host.id = "-";
  add(host, "-", {outcome, detail, ""});
}

int Report::finish() const {
  int tried = held_ + broke_ + unjudged_ + host_changed_;
  if (format_ == Format::kJson) {
    json::object answer = {{"tried", tried},        {"held", held_},
                           {"broke", broke_},       {"skipped", skipped_},
                           {"unjudged", unjudged_}, {"host_changed", host_changed_},
                           {"victims", rows_}};
    printf("%s\n", json::serialize(answer).c_str());
  } else {
    printf("%d tried, %d held, %d skipped", tried, held_, skipped_);
    if (broke_ > 0) printf(", %d BROKE THROUGH", broke_);
    if (unjudged_ > 0) printf(", %d unjudged", unjudged_);
    if (host_changed_ > 0) printf(", %d with a host that changed", host_changed_);
    printf("\n");
  }
  if (broke_ > 0 || unjudged_ > 0 || held_ == 0) return 1;
  return host_changed_ > 0 ? kExitHostChanged : 0;
}

}  // namespace atl::cli::selftest
