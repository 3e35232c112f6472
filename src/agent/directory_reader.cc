#include "agent/directory_reader.h"

#include <fcntl.h>

#include <string_view>

#include "agent/file_wire.h"
#include "base/fd.h"

namespace atl::agent {

Result<DirectoryReader> DirectoryReader::open(int directory) {
  Fd copy(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (!copy) return file_error("dup");
  DIR* stream = fdopendir(copy.get());
  if (stream == nullptr) return file_error("read directory");
  copy.release();
  rewinddir(stream);
  return DirectoryReader(stream);
}

DirectoryReader::~DirectoryReader() {
  if (stream_ != nullptr) closedir(stream_);
}

const dirent* DirectoryReader::next() {
  while (const dirent* entry = readdir(stream_)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry;
  }
  return nullptr;
}

}  // namespace atl::agent
