#include "linux/resource_limits.h"

#include <algorithm>

namespace atl::linux {

Result<void> set_limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
  if (setrlimit(resource, &limit) != 0) return Error::system("set a limit");
  return {};
}

Result<void> lower_limit(__rlimit_resource_t resource, rlim_t most) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0) return Error::system("read a limit");
  if (limit.rlim_max <= most) return {};
  return set_limit(resource, std::min(limit.rlim_cur, most), most);
}

Result<void> limit_open_files(rlim_t asked, rlim_t spare) {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return Error::system("read the limit of open files");
  if (files.rlim_max < asked) return Error::from_errno("limit open files", EPERM);
  return set_limit(RLIMIT_NOFILE, asked, std::min(files.rlim_max, std::max(asked, spare)));
}

bool may_open_files(rlim_t count) {
  rlimit files;
  return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max >= count;
}

Result<void> allow_open_files(rlim_t most) {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return Error::system("read the limit of open files");
  if (files.rlim_max >= most) return {};
  return set_limit(RLIMIT_NOFILE, files.rlim_cur, most);
}

}  // namespace atl::linux
