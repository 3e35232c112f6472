#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

namespace atl {

void check_failed(const char* condition, const char* file, int line) {
  fprintf(stderr, "atoll: check failed: %s at %s:%d\n", condition, file, line);
  abort();
}

}  // namespace atl
