// Whole-file reads and writes through a directory fd, for small control files (cgroup, /proc, pid
// and key files). Every read has a limit.
#pragma once

#include <fcntl.h>

#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl {

inline constexpr size_t kMaxControlFileBytes = 64 * 1024;

// O_CLOEXEC is always added.
Result<Fd> open_at(int directory, const std::string& path, int flags, unsigned mode = 0);
Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0);

// Reads to the end; more than `limit` bytes is an error.
Result<std::string> read_all(int fd, size_t limit = kMaxControlFileBytes);
Result<std::string> read_file_at(int directory, const std::string& path,
                                 size_t limit = kMaxControlFileBytes);
Result<std::string> read_file(const std::string& path, size_t limit = kMaxControlFileBytes);

// Writes every byte, or fails.
Result<void> write_all(int fd, std::string_view bytes);
// Writes to an existing file (as /proc and cgroup files are), in one write(2).
Result<void> write_file_at(int directory, const std::string& path, std::string_view bytes);

// A new or renamed file survives power loss only when the directory that names it was synced too.
Result<void> sync_directory_of(const std::string& path);

// Creates or replaces by a synced temporary file and a rename, so that a reader never sees half,
// and durable when it returns. A failure leaves the old file and no temporary one.
Result<void> replace_file(const std::string& path, std::string_view bytes, unsigned mode);

// mkdir that accepts an existing directory.
Result<void> make_directory(const std::string& path, unsigned mode);

}  // namespace atl
