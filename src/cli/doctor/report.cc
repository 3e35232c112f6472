#include "cli/doctor/report.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

std::string names_of(const Findings& findings, FindingState state) {
  std::string names;
  for (const Finding& finding : findings) {
    if (finding.kind != FindingClass::kRequired || finding.state != state) continue;
    names += (names.empty() ? "" : ", ") + finding.name;
  }
  return names;
}

Driver judge_jail(const Findings& findings) {
  std::string missing = names_of(findings, FindingState::kMissing);
  if (!missing.empty()) return {"jail", FindingState::kMissing, "missing: " + missing};
  std::string unknown = names_of(findings, FindingState::kUnknown);
  if (!unknown.empty()) return {"jail", FindingState::kUnknown, "unknown: " + unknown};
  return {"jail", FindingState::kOk, ""};
}

// The wall, and the finding that says whether there is what it needs, are called the same.
Driver judge_monitored(const Findings& findings, std::string_view wall) {
  std::string name(wall);
  Driver jail = judge_jail(findings);
  if (jail.usable != FindingState::kOk) return {name, jail.usable, jail.reason};
  for (const Finding& finding : findings) {
    if (finding.name != wall) continue;
    if (finding.state == FindingState::kOk) return {name, FindingState::kOk, ""};
    if (!finding.found.empty()) return {name, FindingState::kMissing, finding.found};
  }
  return {name, FindingState::kMissing, "missing: " + name};
}

std::string_view usable_text(FindingState state) {
  static constexpr std::string_view kTexts[] = {"usable", "not usable", "cannot be told"};
  return kTexts[static_cast<size_t>(state)];
}

std::string group_of(const Finding& finding) {
  size_t dot = finding.name.find('.');
  return dot == std::string::npos ? "" : finding.name.substr(0, dot);
}

std::string leaf_text(const Finding& finding) {
  std::string leaf = finding.name.substr(finding.name.find('.') + 1);
  return finding.found.empty() ? leaf : leaf + " " + finding.found;
}

struct Row {
  FindingState state;
  std::string name;
  std::string text;
};

// What is well and belongs together shares a row; what is not has one of its own.
std::vector<Row> rows_of(const Findings& findings, FindingClass kind) {
  std::vector<Row> rows;
  for (const Finding& finding : findings) {
    if (finding.kind != kind) continue;
    std::string group = group_of(finding);
    if (finding.state != FindingState::kOk || group.empty()) {
      rows.push_back({finding.state, finding.name, finding.found});
      continue;
    }
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == group; });
    if (row != rows.end())
      row->text += ", " + leaf_text(finding);
    else
      rows.push_back({finding.state, group, leaf_text(finding)});
  }
  return rows;
}

// One command for all packages.
std::vector<Row> remedies_of(const Findings& findings) {
  constexpr std::string_view kInstall = "apt-get install ";
  std::vector<Row> rows;
  Row install = {FindingState::kMissing, "program", ""};
  bool ask_as_root = false;
  for (const Finding& finding : findings) {
    if (finding.remedy.empty()) continue;
    if (finding.remedy == kAskAsRoot)
      ask_as_root = true;
    else if (group_of(finding) == install.name && finding.remedy.starts_with(kInstall))
      install.text += " " + finding.remedy.substr(kInstall.size());
    else
      rows.push_back({finding.state, finding.name, finding.remedy});
  }
  if (!install.text.empty())
    rows.push_back({install.state, install.name, "apt-get install" + install.text});
  if (ask_as_root) rows.push_back({FindingState::kUnknown, "what is unknown", kAskAsRoot});
  return rows;
}

size_t widest_name(const Findings& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) {
    bool shared = finding.state == FindingState::kOk && !group_of(finding).empty();
    width = std::max(width, shared ? group_of(finding).size() : finding.name.size());
  }
  return width;
}

}  // namespace

std::vector<Driver> judge_drivers(const Findings& findings) {
  return {judge_jail(findings), judge_monitored(findings, kSentryFinding),
          judge_monitored(findings, kMachineFinding)};
}

bool Report::jail_usable() const { return drivers.front().usable == FindingState::kOk; }

json::object to_json(const Report& report) {
  json::array drivers, findings;
  for (const Driver& driver : report.drivers) {
    json::value usable = driver.usable == FindingState::kUnknown
                             ? json::value(nullptr)
                             : json::value(driver.usable == FindingState::kOk);
    drivers.push_back(
        {{"name", driver.name}, {"usable", std::move(usable)}, {"reason", driver.reason}});
  }
  for (const Finding& finding : report.findings)
    findings.push_back({{"name", finding.name},
                        {"class", class_name(finding.kind)},
                        {"state", state_name(finding.state)},
                        {"found", finding.found},
                        {"remedy", finding.remedy}});
  return {{"drivers", std::move(drivers)}, {"findings", std::move(findings)}};
}

std::string to_text(const Report& report) {
  std::string text;
  for (const Driver& driver : report.drivers)
    text += fmt::format("{:<8} {}{}{}\n", driver.name, usable_text(driver.usable),
                        driver.reason.empty() ? "" : ": ", driver.reason);
  size_t width = widest_name(report.findings);
  for (FindingClass kind : {FindingClass::kRequired, FindingClass::kExtra, FindingClass::kAdvice}) {
    text += fmt::format("{}\n", kind == FindingClass::kAdvice ? "host" : class_name(kind));
    for (const Row& row : rows_of(report.findings, kind))
      text += fmt::format("  {:<7}  {:<{}}  {}\n", state_name(row.state), row.name, width,
                          escape_line(row.text));
  }
  std::vector<Row> remedies = remedies_of(report.findings);
  if (!remedies.empty()) text += "advice\n";
  for (const Row& row : remedies)
    text += fmt::format("  {:<{}}  {}\n", row.name, width, escape_line(row.text));
  return text;
}

}  // namespace atl::cli
