#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

namespace atl {

void Fd::reset(int number) {
  int old = std::exchange(number_, number);
  if (old < 0) return;
  int saved = errno;  // a destructor must not change what the caller is about to report
  close(old);
  errno = saved;
}

}  // namespace atl
