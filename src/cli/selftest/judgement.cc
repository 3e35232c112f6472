#include "cli/selftest/judgement.h"

#include <algorithm>

#include "cli/api.h"

namespace atl::cli::selftest {
namespace {

namespace json = boost::json;

// As tests/victims/victim.h has them.
constexpr int64_t kExitHeld = 0;
constexpr int64_t kExitBroke = 1;
constexpr int64_t kExitNotTried = 77;
constexpr int64_t kExitStopped = 3;
// What the agent answers for a program or directory that cannot be used.
constexpr int64_t kExitNotStarted = 126;
constexpr size_t kMaxDetailBytes = 200;

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return "";
  return std::string(value->as_string().c_str(), value->as_string().size());
}

int64_t number_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return -1;
  if (value->is_int64()) return value->as_int64();
  return value->is_uint64() ? static_cast<int64_t>(value->as_uint64()) : -1;
}

// The line with the mark; the last line without one.
std::string line_with(const std::string& output, const std::string& mark) {
  std::string last;
  for (size_t begin = 0; begin < output.size();) {
    size_t end = std::min(output.find('\n', begin), output.size());
    std::string line = output.substr(begin, end - begin);
    begin = end + 1;
    if (!mark.empty() && line.starts_with(mark)) return line.substr(mark.size(), kMaxDetailBytes);
    if (!line.empty()) last = line;
  }
  return last.substr(0, kMaxDetailBytes);
}

bool expects(const Victim& victim, const std::string& verdict) {
  return std::find(victim.verdicts.begin(), victim.verdicts.end(), verdict) !=
         victim.verdicts.end();
}

bool ended_by_itself(const std::string& verdict) { return verdict == "ok" || verdict == "nonzero"; }

Outcome outcome_of(const Victim& victim, const std::string& verdict, int64_t exit_code) {
  bool own_words = victim.command.empty();  // another program's exit code means nothing
  if (own_words && exit_code == kExitBroke) return Outcome::kBroke;
  if (own_words && exit_code == kExitNotTried) return Outcome::kSkipped;
  if (expects(victim, verdict)) return Outcome::kHeld;
  if (own_words && expects(victim, "stopped") && exit_code == kExitStopped) return Outcome::kHeld;
  if (expects(victim, "any") && ended_by_itself(verdict)) return Outcome::kHeld;
  bool held = victim.verdicts.empty() && verdict == "ok" && exit_code == kExitHeld;
  return held ? Outcome::kHeld : Outcome::kUnjudged;
}

// A limit of output is not for the program to see, so it is checked here.
bool exceeds_output(const Victim& victim, const json::object& exec) {
  for (const auto& [name, value] : victim.limits)
    if (name == "output_bytes" &&
        (number_of(exec, "stdout_bytes") > value || number_of(exec, "stderr_bytes") > value))
      return true;
  return false;
}

std::string expectation(const Victim& victim) {
  std::string text;
  for (const std::string& verdict : victim.verdicts) text += (text.empty() ? "" : " or ") + verdict;
  return text;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHeld:
      return "held";
    case Outcome::kBroke:
      return "BROKE";
    case Outcome::kSkipped:
      return "skipped";
    case Outcome::kUnjudged:
      return "unjudged";
    case Outcome::kHostChanged:
      return "host changed";
  }
  return "unjudged";
}

void call_broken(Judgement& judgement, const std::string& change) {
  judgement.detail =
      judgement.outcome == Outcome::kBroke ? judgement.detail + "; " + change : change;
  judgement.outcome = Outcome::kBroke;
}

Result<Judgement> judge(const Victim& victim, const json::object& exec) {
  Judgement judgement;
  judgement.verdict = text_of(exec, "verdict");
  int64_t exit_code = number_of(exec, "exit_code");
  judgement.outcome = outcome_of(victim, judgement.verdict, exit_code);
  ATOLL_TRY(std::string output, output_bytes(exec, "stdout"));
  if (exceeds_output(victim, exec)) {
    judgement.outcome = Outcome::kBroke;
    judgement.detail = "more output was kept than its limit allows";
    return judgement;
  }
  if (!victim.limits.empty() && output.find('\n') == output.npos) output.clear();
  judgement.detail = line_with(output, judgement.outcome == Outcome::kBroke      ? "BROKE: "
                                       : judgement.outcome == Outcome::kUnjudged ? "UNJUDGED: "
                                                                                 : "");
  if (exit_code == kExitNotStarted && !victim.directory.empty())
    judgement.detail = "refused to start there";
  if (judgement.outcome != Outcome::kUnjudged) return judgement;
  std::string ending = "ended as " + judgement.verdict;
  if (exit_code >= 0) ending += " " + std::to_string(exit_code);
  if (!victim.verdicts.empty()) ending += ", must be " + expectation(victim);
  judgement.detail = judgement.detail.empty() ? ending : ending + ": " + judgement.detail;
  return judgement;
}

}  // namespace atl::cli::selftest
