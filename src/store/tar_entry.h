// One entry of a tar archive, as far as we carry it: no owner, no device, no setuid.
#pragma once

#include <cstdint>
#include <string>

namespace atl::store {

struct TarEntry {
  enum class Type : unsigned char { kFile, kDirectory, kSymlink, kHardLink, kOther };

  std::string path;  // as the archive has it
  Type type = Type::kFile;
  uint32_t mode = 0;  // permission bits
  uint32_t uid = 0, gid = 0;
  uint64_t size = 0;  // of a file's bytes that follow
  int64_t modified_ns = 0;
  std::string target;  // of both kinds of links
};

}  // namespace atl::store
