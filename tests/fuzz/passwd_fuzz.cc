// What whoever is root inside may write into /etc/passwd and /etc/group, and ask to be. The first
// line of the input is the user; an empty line parts the two files.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "agent/passwd.h"
#include "base/check.h"

namespace {

using namespace atl::agent;

void check(const Account& account) {
  ATOLL_CHECK(account.uid <= kMaxUserId && account.gid <= kMaxUserId);
  ATOLL_CHECK(account.groups.size() <= kMaxGroups);
  for (gid_t group : account.groups) ATOLL_CHECK(group <= kMaxUserId && group != account.gid);
  for (const std::string& path : {account.home, account.shell})
    ATOLL_CHECK(path.starts_with('/') && path.find('\0') == path.npos &&
                path.find('\n') == path.npos);
  ATOLL_CHECK(!account.name.empty() && account.name.find_first_of(":\n/ ") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view user = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(std::min(bytes.size(), user.size() + 1));
  std::string_view passwd = bytes.substr(0, bytes.find("\n\n"));
  std::string_view group = bytes.substr(std::min(bytes.size(), passwd.size() + 2));
  auto choice = parse_user(user);
  if (!choice) return 0;
  ATOLL_CHECK(user.find('\0') == user.npos && choice->uid <= kMaxUserId);
  auto account = choose_account(*choice, passwd, group);
  ATOLL_CHECK(account || !choice->name.empty());
  if (!account) return 0;
  check(*account);
  if (choice->name == "root") ATOLL_CHECK(account->uid == 0);
  if (choice->name.empty()) ATOLL_CHECK(account->uid == choice->uid);
  return 0;
}
