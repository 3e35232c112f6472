#include "linux/cgroup_member.h"

#include <charconv>

#include "base/file.h"
#include "linux/pidfd.h"

namespace atl::linux {
namespace {

Result<pid_t> first_member(const std::string& group) {
  ATOLL_TRY(std::string text, read_file(group + "/cgroup.procs"));
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  if (pid <= 0) return Error::from_errno("nobody is in " + group, ESRCH);
  return pid;
}

}  // namespace

Result<Fd> open_first_member(const std::string& group) {
  ATOLL_TRY(pid_t pid, first_member(group));
  ATOLL_TRY(Fd member, open_pidfd(pid));
  // Who is in the group after its pidfd was opened was there before, so the number meant the same.
  ATOLL_TRY(pid_t again, first_member(group));
  if (pid != again || has_ended(member.get()))
    return Error::from_errno("the process in " + group + " is gone", ESRCH);
  return member;
}

}  // namespace atl::linux
