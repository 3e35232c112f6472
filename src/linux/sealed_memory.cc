#include "linux/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace atl::linux {
namespace {

constexpr int kAttempts = 20;
constexpr useconds_t kPauseMicros = 5'000;

}  // namespace

Result<void> seal_memory(int memory) {
  int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Busy: somebody in the kernel holds a page for a moment, as its monitors of memory do.
  for (int i = 0; i < kAttempts; ++i) {
    if (fcntl(memory, F_ADD_SEALS, seals) == 0) return {};
    if (errno != EBUSY) break;
    usleep(kPauseMicros);
  }
  return Error::system("seal a memfd");
}

Result<Fd> make_sealed_memory(const char* name, std::string_view bytes) {
  // MFD_EXEC since 6.3, where a sysctl may make memfds not executable by default.
  Fd memory(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!memory && errno == EINVAL) memory = Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return Error::system("memfd_create");
  ATOLL_TRY_VOID(write_all(memory.get(), bytes));
  ATOLL_TRY_VOID(seal_memory(memory.get()));
  if (lseek(memory.get(), 0, SEEK_SET) != 0) return Error::system("lseek");
  return memory;
}

}  // namespace atl::linux
