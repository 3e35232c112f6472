#include "store/directory_sync.h"

#include <unistd.h>

#include "base/file.h"

namespace atl::store {

Result<void> sync_directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string directory = ".";
  if (slash != path.npos) directory = slash == 0 ? "/" : path.substr(0, slash);
  ATOLL_TRY(Fd fd, open_file(directory, O_RDONLY | O_DIRECTORY));
  if (fsync(fd.get()) != 0) return Error::system("fsync " + directory);
  return {};
}

}  // namespace atl::store
