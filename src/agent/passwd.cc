#include "agent/passwd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"
#include "linux/open_resolved.h"

namespace atl::agent {
namespace {

constexpr std::string_view kRoot = "root";
constexpr std::string_view kUser = "user";
constexpr const char* kShell = "/bin/sh";
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kPasswdFields = 7;
constexpr size_t kGroupFields = 4;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One way only to write each number.
std::optional<uint32_t> parse_id(std::string_view text) {
  uint32_t id = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id <= kMaxUserId ? std::optional(id) : std::nullopt;
}

bool is_name(std::string_view text) {
  auto may_be_in_it = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '-' || c == '.' || c == '$';
  };
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  // A digit in front would be a number, '-' an option of some tool.
  if (is_digit(text[0]) || text[0] == '-' || text[0] == '.') return false;
  return std::all_of(text.begin(), text.end(), may_be_in_it);
}

// The path, or `fallback` if it is none.
std::string path_or(std::string_view text, std::string_view fallback) {
  bool good = text.starts_with('/') && text.find('\0') == text.npos;
  return std::string(good ? text : fallback);
}

// Calls `take` with the fields of each line that has so many, until it returns false.
template <size_t kFields, typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    auto colons = static_cast<size_t>(std::count(line.begin(), line.end(), ':'));
    if (line.size() > kMaxAccountLineBytes || colons != kFields - 1) continue;
    std::array<std::string_view, kFields> fields;
    for (std::string_view& field : fields) {
      field = line.substr(0, line.find(':'));
      line.remove_prefix(std::min(line.size(), field.size() + 1));
    }
    if (!take(fields)) return;
  }
}

// name:password:uid:gid:comment:home:shell
using PasswdFields = std::array<std::string_view, kPasswdFields>;
std::optional<Account> parse_entry(const PasswdFields& fields) {
  auto uid = parse_id(fields[2]);
  auto gid = parse_id(fields[3]);
  if (!uid || !gid || !is_name(fields[0])) return std::nullopt;
  return Account{
      *uid, *gid, {}, std::string(fields[0]), path_or(fields[5], "/"), path_or(fields[6], kShell)};
}

std::optional<Account> find_entry(const UserChoice& choice, std::string_view passwd) {
  std::optional<Account> found;
  for_each_line<kPasswdFields>(passwd, [&](const PasswdFields& fields) {
    if (!choice.name.empty() && fields[0] != choice.name) return true;
    auto entry = parse_entry(fields);
    bool wanted = entry && (!choice.name.empty() || entry->uid == choice.uid);
    if (wanted) found = std::move(entry);
    return !wanted;
  });
  return found;
}

Account without_entry(uint32_t id) {
  std::string name = id == 0 ? "root" : id == kUserId ? "user" : std::to_string(id);
  std::string home = id == 0 ? "/root" : id == kUserId ? "/home/user" : "/";
  return {id, id, {}, std::move(name), std::move(home), kShell};
}

bool is_listed(std::string_view members, std::string_view name) {
  while (!members.empty()) {
    std::string_view member = members.substr(0, members.find(','));
    if (member == name) return true;
    members.remove_prefix(std::min(members.size(), member.size() + 1));
  }
  return false;
}

// name:password:gid:members
void add_groups(Account& account, std::string_view group) {
  for_each_line<kGroupFields>(group, [&](const std::array<std::string_view, kGroupFields>& fields) {
    if (!is_listed(fields[3], account.name)) return true;
    auto gid = parse_id(fields[2]);
    bool known =
        !gid || *gid == account.gid ||
        std::find(account.groups.begin(), account.groups.end(), *gid) != account.groups.end();
    if (!known) account.groups.push_back(*gid);
    return account.groups.size() < kMaxGroups;
  });
}

// Not across mounts: what /proc and /dev call regular files may wait or do something.
std::string read_accounts(const char* path) {
  Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd file =
      linux::open_resolved(root.get(), path,
                           {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV});
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (static_cast<uint64_t>(status.st_size) > kMaxAccountsBytes) return {};
  auto text = read_all(file.get(), kMaxAccountsBytes);
  return text ? std::move(*text) : std::string();
}

}  // namespace

std::optional<UserChoice> parse_user(std::string_view text) {
  if (is_name(text)) return UserChoice{std::string(text), 0, std::nullopt};
  size_t colon = text.find(':');
  auto uid = parse_id(text.substr(0, colon));
  if (!uid) return std::nullopt;
  if (colon == text.npos) return UserChoice{{}, *uid, std::nullopt};
  auto gid = parse_id(text.substr(colon + 1));
  if (!gid) return std::nullopt;
  return UserChoice{{}, *uid, gid};
}

std::optional<Account> choose_account(const UserChoice& choice, std::string_view passwd,
                                      std::string_view group) {
  if (choice.gid) {
    Account exact = without_entry(choice.uid);
    exact.gid = *choice.gid;
    return exact;
  }
  auto account = find_entry(choice, passwd);
  // Nobody else is to be found under that name.
  if (choice.name == kRoot && (!account || account->uid != 0)) account = without_entry(0);
  if (choice.name == kUser && !account) account = without_entry(kUserId);
  if (choice.name.empty() && !account) account = without_entry(choice.uid);
  if (account) add_groups(*account, group);
  return account;
}

Result<Account> find_account(std::string_view user) {
  auto choice = parse_user(user);
  if (!choice) return Error(Code::kNotFound, "find user", ENOENT);
  std::string passwd, group;
  if (!choice->gid) {
    passwd = read_accounts("etc/passwd");
    group = read_accounts("etc/group");
  }
  auto account = choose_account(*choice, passwd, group);
  if (!account) return Error(Code::kNotFound, "find user", ENOENT);
  return std::move(*account);
}

}  // namespace atl::agent
