#include "linux/program_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "linux/sealed_memory.h"

namespace atl::linux {

Result<std::string> read_program(const std::string& path) {
  ATOLL_TRY(Fd file, open_file(path, O_RDONLY));
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Error::system("stat " + path);
  if (!S_ISREG(status.st_mode)) return Error::from_errno(path + " is not a regular file", EINVAL);
  ATOLL_TRY(std::string bytes, read_all(file.get(), kMaxProgramBytes));
  if (!bytes.starts_with("\177ELF"))
    return Error(Code::kInvalid, path + " is not an ELF program", ENOEXEC);
  return bytes;
}

Result<Fd> load_program(const std::string& path, const char* name) {
  ATOLL_TRY(std::string bytes, read_program(path));
  return make_sealed_memory(name, bytes);
}

}  // namespace atl::linux
