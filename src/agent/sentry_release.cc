#include "agent/sentry_release.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/file.h"

namespace atl::agent {
namespace {

constexpr const char* kGoProgramFile = "/usr/lib/atoll/go-program";
constexpr const char* kStatusFile = "/var/lib/dpkg/status";
constexpr size_t kMaxStatusBytes = 4 << 20;
constexpr size_t kMaxVersionBytes = 64;
constexpr size_t kDateDigits = 8;
constexpr std::string_view kUnknown = "unknown";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A release is named after its day: 0.0~20240729.0-4, v0.0.0-20260905035102-160fafc42237.
std::optional<std::chrono::sys_days> day_of(std::string_view version) {
  for (size_t at = 0; at + kDateDigits <= version.size(); ++at) {
    std::string_view date = version.substr(at, kDateDigits);
    if (!std::all_of(date.begin(), date.end(), is_digit)) continue;
    auto number = [date](size_t first, size_t count) {
      unsigned value = 0;
      for (char digit : date.substr(first, count))
        value = value * 10 + static_cast<unsigned>(digit - '0');
      return value;
    };
    std::chrono::year_month_day day{std::chrono::year(static_cast<int>(number(0, 4))),
                                    std::chrono::month(number(4, 2)),
                                    std::chrono::day(number(6, 2))};
    if (day.ok()) return std::chrono::sys_days(day);
  }
  return std::nullopt;
}

// Only what a version may be made of.
std::string_view plain_or_unknown(std::string_view version) {
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-:~";
  bool plain = !version.empty() && version.size() <= kMaxVersionBytes &&
               version.find_first_not_of(kLetters) == version.npos;
  return plain ? version : kUnknown;
}

std::string_view version_in_record(std::string_view record) {
  constexpr std::string_view kRunsc = "/usr/bin/runsc gvisor.dev/gvisor ";
  if (!record.starts_with(kRunsc)) return kUnknown;
  record.remove_prefix(kRunsc.size());
  return plain_or_unknown(record.substr(0, record.find(' ')));
}

// Of the paragraph of the package.
std::string_view version_in_status(std::string_view status) {
  size_t begin = status.find("Package: runsc\n");
  if (begin == status.npos || (begin > 0 && status[begin - 1] != '\n')) return kUnknown;
  std::string_view paragraph = status.substr(begin);
  paragraph = paragraph.substr(0, paragraph.find("\n\n"));
  constexpr std::string_view kField = "\nVersion: ";
  size_t field = paragraph.find(kField);
  if (field == paragraph.npos) return kUnknown;
  std::string_view version = paragraph.substr(field + kField.size());
  return plain_or_unknown(version.substr(0, version.find('\n')));
}

}  // namespace

linux::Facts sentry_release(const ReleaseNotes& notes, std::chrono::system_clock::time_point now) {
  std::string_view version = notes.go_program.empty() ? version_in_status(notes.packages)
                                                      : version_in_record(notes.go_program);
  linux::Facts facts = {{"runsc.version", std::string(version)}};
  if (auto day = day_of(version)) {
    auto age = std::chrono::floor<std::chrono::days>(now) - *day;
    facts.push_back({"runsc.age_days", std::to_string(age.count())});
  }
  return facts;
}

linux::Facts read_sentry_release() {
  auto record = read_file(kGoProgramFile, kMaxStatusBytes);
  auto status = read_file(kStatusFile, kMaxStatusBytes);
  ReleaseNotes notes = {.go_program = record ? std::string_view(*record) : std::string_view(),
                        .packages = status ? std::string_view(*status) : std::string_view()};
  return sentry_release(notes, std::chrono::system_clock::now());
}

}  // namespace atl::agent
