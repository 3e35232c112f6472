// What the kernel says about a file, as an entry of the protocol.
#pragma once

#include <sys/stat.h>

#include <string>

#include "agent/file_protocol.h"
#include "base/result.h"

namespace atl::agent {

EntryType entry_type(mode_t mode);
// Which time an entry has: that of its bytes, or of anything about it.
enum class Times : uint8_t { kOfBytes, kOfChange };
FileEntry describe(const struct stat& status, std::string path, Times times = Times::kOfBytes);

// A name in a directory, not followed.
Result<FileEntry> read_entry(int directory, const std::string& name, std::string path,
                             Times times = Times::kOfBytes);
// The file of a descriptor, also of one made by O_PATH.
Result<FileEntry> read_entry(int fd, std::string path);

// The "user." attributes; those with larger values than the protocol carries are left out.
Result<void> read_attributes(int fd, FileEntry& entry);
Result<void> write_attributes(int fd, const std::vector<FileAttribute>& attributes);

}  // namespace atl::agent
