#include "cli/selftest/victim_list.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace atl::cli::selftest {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

Error malformed(const std::string& what) {
  return Error(Code::kCorrupt, "the selftest's list of victims: " + what);
}

Result<int64_t> parse_number(const std::string& text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return malformed("\"" + text + "\" is not a number");
  return number;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_pairs(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (text.empty()) return pairs;
  for (const std::string& pair : split(text, ',')) {
    size_t colon = pair.find(':');
    if (colon == pair.npos) return malformed("\"" + pair + "\" is not name:value");
    pairs.emplace_back(pair.substr(0, colon), pair.substr(colon + 1));
  }
  return pairs;
}

Result<Place> parse_place(const std::string& text) {
  if (text == "shared") return Place::kShared;
  if (text == "fresh") return Place::kFresh;
  if (text == "none") return Place::kNone;
  return malformed("\"" + text + "\" is not a place");
}

std::string spaced(std::string words) {
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

Result<void> read_walls(Row& row, Victim& victim) {
  ATOLL_TRY(auto unproven, parse_pairs(row["not_behind"]));
  for (const auto& [wall, why] : unproven) victim.not_behind[wall] = spaced(why);
  ATOLL_TRY(auto others, parse_pairs(row["instead"]));
  for (const auto& [wall, ending] : others) {
    size_t colon = ending.find(':');
    if (colon == ending.npos) return malformed("\"" + ending + "\" is not verdicts:why");
    victim.instead[wall] = {split(ending.substr(0, colon), '|'), spaced(ending.substr(colon + 1))};
  }
  return {};
}

Result<Victim> make_victim(Row row) {
  Victim victim;
  victim.name = row["name"];
  victim.id = row["id"];
  if (victim.name.empty() || victim.id.empty()) return malformed("a row without name or id");
  victim.about = row["about"];
  victim.directory = row["cwd"];
  victim.command = row["command"];
  if (row["user"] == "both")
    victim.users = {"user", "root"};
  else
    victim.users = {row["user"]};
  if (!row["verdict"].empty()) victim.verdicts = split(row["verdict"], '|');
  ATOLL_TRY(auto limits, parse_pairs(row["limits"]));
  for (const auto& [name, value] : limits) {
    ATOLL_TRY(int64_t number, parse_number(value));
    victim.limits.emplace_back(name, number);
  }
  ATOLL_TRY(victim.exec_fields, parse_pairs(row["exec"]));
  ATOLL_TRY(int64_t timeout, parse_number(row["timeout_ms"]));
  victim.timeout = std::chrono::milliseconds(timeout);
  ATOLL_TRY(victim.place, parse_place(row["sandbox"]));
  ATOLL_TRY_VOID(read_walls(row, victim));
  return victim;
}

}  // namespace

Result<std::vector<Victim>> parse_victims(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::vector<std::string> columns = split(lines[0], '\t');
  std::vector<Victim> victims;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    std::vector<std::string> values = split(lines[i], '\t');
    if (values.size() != columns.size())
      return malformed("line " + std::to_string(i + 1) + " has another number of columns");
    Row row;
    for (size_t at = 0; at < columns.size(); ++at)
      row[columns[at]] = values[at] == "-" ? "" : values[at];
    ATOLL_TRY(Victim victim, make_victim(std::move(row)));
    victims.push_back(std::move(victim));
  }
  if (victims.empty()) return malformed("is empty");
  return victims;
}

}  // namespace atl::cli::selftest
