// An archive that somebody else made, read entry by entry: tar as pax, ustar and GNU write it,
// plain, or compressed by gzip, zstd or xz; or zip. libarchive takes it apart in this process and
// never starts a program; entries, bytes and the ratio of compression are bounded here. To be used
// in a jail.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct archive;
struct archive_entry;

namespace atl::builder {

inline constexpr uint64_t kMaxEntries = 1'000'000;
inline constexpr uint64_t kMaxUnpackedBytes = 32ull << 30;
inline constexpr uint64_t kMaxRatio = 1000;
inline constexpr uint64_t kRatioFloorBytes = 64ull << 20;  // which any archive may unpack to
inline constexpr uint64_t kFreeSpaceFloorBytes = 1ull << 30;

struct ArchiveEntry {
  enum class Type : unsigned char { kFile, kDirectory, kSymlink, kHardLink, kOther };
  std::string path;  // as the archive has it
  std::string target;
  Type type = Type::kFile;
  uint32_t mode = 0;
  int64_t uid = 0, gid = 0;
  int64_t modified = 0;  // seconds
  uint64_t size = 0;
};

// What all archives of one build may have together.
struct UnpackBudget {
  uint64_t entries = kMaxEntries;
  uint64_t bytes = kMaxUnpackedBytes;
};

class ArchiveFile {
 public:
  // Reads `fd` from its beginning; it stays the caller's and must outlive the object.
  static Result<ArchiveFile> open(int fd, UnpackBudget& budget);
  // As its directory at the end says.
  static Result<ArchiveFile> open_zip(int fd, UnpackBudget& budget);
  ArchiveFile(ArchiveFile&&) noexcept;
  ~ArchiveFile();

  // The next entry; nothing at the end.
  Result<std::optional<ArchiveEntry>> next();

  // Gives the bytes of the entry to `take` with their offsets; holes are left out.
  using Take = std::function<Result<void>(std::string_view bytes, uint64_t offset)>;
  Result<void> read(const Take& take);

 private:
  struct Source;
  struct Free {
    void operator()(archive* reader) const;
  };
  ArchiveFile(std::unique_ptr<Source> source, std::unique_ptr<archive, Free> reader,
              UnpackBudget& budget);
  using Support = bool (*)(archive* reader);
  static Result<ArchiveFile> open_as(int fd, UnpackBudget& budget, Support support);
  Error failure() const;
  Result<void> charge(uint64_t bytes);

  std::unique_ptr<Source> source_;  // what the reader's callbacks use; must outlive it
  std::unique_ptr<archive, Free> reader_;
  UnpackBudget& budget_;
  uint64_t unpacked_bytes_ = 0;
  uint64_t entry_bytes_ = 0;
};

}  // namespace atl::builder
