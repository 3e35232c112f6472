#include "isolate/imprint_file.h"

#include <sys/mman.h>

#include "base/file.h"
#include "linux/sealed_memory.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace atl::isolate {

constexpr uint64_t kMaxBytes = 512ull << 20;

Result<ImprintFile> ImprintFile::create() {
  // Executable, for what a program has compiled at run time. The flag is known since 6.3.
  Fd memory(memfd_create("atoll-imprint", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!memory && errno == EINVAL)
    memory = Fd(memfd_create("atoll-imprint", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return Error::system("memfd_create");
  return ImprintFile(std::move(memory));
}

Result<void> ImprintFile::append(std::string_view bytes) {
  if (bytes_ + bytes.size() > kMaxBytes)
    return Error(Code::kExhausted, "an imprint has more than 512 MiB");
  bytes_ += bytes.size();
  return write_all(memory_.get(), bytes);
}

Result<void> ImprintFile::seal() { return linux::seal_memory(memory_.get()); }

}  // namespace atl::isolate
