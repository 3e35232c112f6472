#include "cli/doctor/uid_range.h"

#include <errno.h>

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/doctor/words.h"

namespace atl::cli {
namespace {

constexpr size_t kMaxAccountsBytes = 16 * 1024 * 1024;

bool overlaps(uint64_t first, uint64_t count) {
  return count > 0 && first < kFirstUid + kUidCount && first + count > kFirstUid;
}

struct Accounts {
  const char* path;
  std::vector<std::string> (*find)(std::string_view);
};
constexpr Accounts kAccounts[] = {{"/etc/passwd", find_claimed_ids},
                                  {"/etc/group", find_claimed_ids},
                                  {"/etc/subuid", find_claimed_ranges},
                                  {"/etc/subgid", find_claimed_ranges}};

Result<std::string> read_if_present(const char* path) {
  auto text = read_file(path, kMaxAccountsBytes);
  if (!text && text.error().system_errno() == ENOENT) return std::string();
  return text;
}

}  // namespace

std::vector<std::string> find_claimed_ids(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view line : split(text, '\n')) {
    std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 3) continue;
    auto id = parse_number(fields[2]);
    if (id && overlaps(*id, 1)) names.emplace_back(fields[0]);
  }
  return names;
}

std::vector<std::string> find_claimed_ranges(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view line : split(text, '\n')) {
    std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() != 3) continue;
    auto first = parse_number(fields[1]);
    auto count = parse_number(fields[2]);
    if (first && count && overlaps(*first, *count)) names.emplace_back(fields[0]);
  }
  return names;
}

Findings probe_uid_range() {
  Finding finding = {.name = "uid_range",
                     .kind = FindingClass::kRequired,
                     .state = FindingState::kOk,
                     .found = fmt::format("{}-{} is free in the host's account files", kFirstUid,
                                          kFirstUid + kUidCount - 1),
                     .remedy = ""};
  for (const Accounts& accounts : kAccounts) {
    auto text = read_if_present(accounts.path);
    if (!text) {
      finding.state = FindingState::kUnknown;
      finding.found = text.error().message();
      finding.remedy = kAskAsRoot;
      break;
    }
    std::vector<std::string> names = accounts.find(*text);
    if (names.empty()) continue;
    finding.state = FindingState::kMissing;
    finding.found = fmt::format("{} in {} has ids within {}-{}", names.front(), accounts.path,
                                kFirstUid, kFirstUid + kUidCount - 1);
    finding.remedy =
        fmt::format("give {} other ids in {}: sandboxes use these", names.front(), accounts.path);
    break;
  }
  return {finding};
}

}  // namespace atl::cli
