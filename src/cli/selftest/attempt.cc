#include "cli/selftest/attempt.h"

namespace atl::cli::selftest {
namespace {

std::string joined(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& change : changes) text += (text.empty() ? "" : "; ") + change;
  return text;
}

int severity(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHeld:
      return 0;
    case Outcome::kSkipped:
      return 1;
    case Outcome::kHostChanged:
      return 2;
    case Outcome::kUnjudged:
      return 3;
    case Outcome::kBroke:
      return 4;
  }
  return 4;
}

}  // namespace

Result<Judgement> judge_attempts(const std::function<Result<Attempt>()>& attempt) {
  ATOLL_TRY(Attempt first, attempt());
  if (first.host_changes.empty()) return first.judgement;
  std::string changes = joined(first.host_changes);
  if (first.judgement.outcome == Outcome::kBroke) {
    call_broken(first.judgement, changes);
    return first.judgement;
  }
  ATOLL_TRY(Attempt second, attempt());
  bool is_worse = severity(second.judgement.outcome) > severity(first.judgement.outcome);
  Judgement judgement = is_worse ? second.judgement : first.judgement;
  if (!second.host_changes.empty()) {
    call_broken(judgement, changes + "; when it ran again: " + joined(second.host_changes));
    return judgement;
  }
  bool has_own_fault = severity(judgement.outcome) > severity(Outcome::kHostChanged);
  if (!has_own_fault) judgement.outcome = Outcome::kHostChanged;
  judgement.detail =
      (has_own_fault ? judgement.detail + "; " : "") + changes + "; not when it ran again";
  return judgement;
}

}  // namespace atl::cli::selftest
