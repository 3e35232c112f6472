// A tar file packed by zstd that ends in a seal: a skippable zstd frame, which every unpacker
// passes over, with the SHA-256 of all bytes before it. A file that was cut or changed anywhere is
// known as such before the first byte of it is unpacked. A seal is no signature: whoever can
// rewrite the file can seal it again.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "store/tar_entry.h"

struct archive;

namespace atl::store {

// One thread at a time.
class SealedTarWriter {
 public:
  // Writes to `fd`, which stays the caller's and must outlive the writer.
  static Result<SealedTarWriter> open(int fd);
  SealedTarWriter(SealedTarWriter&&) noexcept;
  SealedTarWriter& operator=(SealedTarWriter&&) noexcept;
  ~SealedTarWriter();

  // A file's bytes follow by append(), entry.size of them.
  Result<void> begin(const TarEntry& entry);
  Result<void> append(std::string_view bytes);
  // Without it the file has no seal.
  Result<void> finish();

 private:
  struct Target;
  struct Free {
    void operator()(archive* writer) const;
  };
  SealedTarWriter(std::unique_ptr<Target> target, std::unique_ptr<archive, Free> writer);
  Error failure(std::string_view operation) const;

  std::unique_ptr<Target> target_;  // what the callback of the writer uses; must outlive it
  std::unique_ptr<archive, Free> writer_;
};

// Reads all of `fd`. kCorrupt: it has no seal, or is not what was sealed.
Result<void> check_seal(int fd);

}  // namespace atl::store
