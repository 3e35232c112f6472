// A tar archive on the way in: pax, ustar and GNU, plain or compressed by gzip or zstd. Its bytes
// are hostile. libarchive takes them apart, in this process and without ever starting another
// program; entries, names and the ratio of compression are bounded here, and so is every read. What
// an entry may name is the caller's matter.
//
// One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "store/tar_entry.h"

struct archive;

namespace atl::store {

inline constexpr size_t kMaxTarEntries = 200'000;
inline constexpr uint64_t kMaxTarBytes = 64ull << 30;    // unpacked
inline constexpr uint64_t kMaxTarRatio = 1000;           // unpacked to packed
inline constexpr uint64_t kTarRatioFloor = 64ull << 20;  // which any archive may unpack to

// kSealed: the caller has checked its seal, so size and number of what is in it are not bounded.
enum class TarOrigin : unsigned char { kStranger, kSealed };

class TarReader {
 public:
  // Reads `fd` from its beginning; it stays the caller's and must outlive the reader.
  static Result<TarReader> open(int fd, TarOrigin origin = TarOrigin::kStranger);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // The next entry, or nothing at the end. kInvalid with reason `invalid_archive`, kExhausted with
  // `archive_too_large`.
  Result<std::optional<TarEntry>> next();
  // The next bytes of the entry; 0 at its end, which is at its size exactly.
  Result<size_t> read(std::span<char> into);

 private:
  struct Source;
  struct Free {
    void operator()(archive* reader) const;
  };
  TarReader(std::unique_ptr<Source> source, std::unique_ptr<archive, Free> reader,
            TarOrigin origin);
  Error failure() const;

  std::unique_ptr<Source> source_;  // what the callbacks of the reader use; must outlive it
  std::unique_ptr<archive, Free> reader_;
  TarOrigin origin_;
  size_t entries_ = 0;
  uint64_t unpacked_bytes_ = 0;
  uint64_t entry_bytes_left_ = 0;
};

}  // namespace atl::store
