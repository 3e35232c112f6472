// Who a program runs as: a name or numbers, looked up in the sandbox's own /etc/passwd and
// /etc/group. Both belong to whoever is root inside, so they are hostile: bounded, never waited
// for, and a line that is not well formed is none. No other source of users is asked.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::agent {

inline constexpr uint32_t kUserId = 1000;
inline constexpr uint32_t kMaxUserId = 65535;  // of users and groups: what is mapped
inline constexpr size_t kMaxAccountsBytes = 256 * 1024;
inline constexpr size_t kMaxAccountLineBytes = 4096;
inline constexpr size_t kMaxGroups = 64;

struct Account {
  uint32_t uid;
  uint32_t gid;
  std::vector<gid_t> groups;  // beside gid
  std::string name;           // without an entry: the number
  std::string home;
  std::string shell;
};

// "name", "uid" or "uid:gid".
struct UserChoice {
  std::string name;  // empty: by number
  uint32_t uid = 0;
  std::optional<uint32_t> gid;
};
std::optional<UserChoice> parse_user(std::string_view text);

// The account in the texts of /etc/passwd and /etc/group. `user` is known without an entry, as
// 1000:1000, and `root` has uid 0 whatever its entry says. A number needs no entry; with a gid the
// choice is exact, and neither text counts.
std::optional<Account> choose_account(const UserChoice& choice, std::string_view passwd,
                                      std::string_view group);

// The same with the files of this process's root, which are not read for an exact choice. ENOENT:
// no such user. A file that is absent, not regular or too large has no entries.
Result<Account> find_account(std::string_view user);

}  // namespace atl::agent
