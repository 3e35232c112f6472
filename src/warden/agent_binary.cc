#include "warden/agent_binary.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace atl::warden {

Result<std::string> read_program(const std::string& path) {
  ATOLL_TRY(Fd file, open_file(path, O_RDONLY));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + path);
  if (!S_ISREG(status.st_mode)) return Error::from_errno(path + " is not a regular file", EINVAL);
  ATOLL_TRY(std::string bytes, read_all(file.get(), kMaxAgentBytes));
  if (!bytes.starts_with("\177ELF"))
    return Error(Code::kInvalid, path + " is not an ELF program", ENOEXEC);
  return bytes;
}

Result<Fd> load_agent_binary(const std::string& path) {
  ATOLL_TRY(std::string bytes, read_program(path));
  return make_sealed_memfd("atoll-agent", bytes);
}

Result<Fd> make_sealed_memfd(const char* name, std::string_view bytes) {
  // MFD_EXEC since 6.3, where a sysctl may make memfds not executable by default.
  Fd memory(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!memory && errno == EINVAL) memory = Fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return Error::system("memfd_create");
  ATOLL_TRY_VOID(write_all(memory.get(), bytes));
  int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (fcntl(memory.get(), F_ADD_SEALS, seals) != 0) return Error::system("seal a memfd");
  if (lseek(memory.get(), 0, SEEK_SET) != 0) return Error::system("lseek");
  return memory;
}

}  // namespace atl::warden
