// Archives in and out of a sandbox: tar on the outside, entries of a tree on the inside. atolld
// takes tar apart, the worker inside never sees it.
//
// An uploaded archive is first stored in a file without a name and looked through as a whole, so
// that one that is malformed, too large or names something it must not leaves nothing behind. Only
// then do its entries go inside, each appearing whole.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "sandbox/files.h"
#include "store/tar_reader.h"

namespace atl::sandbox {

inline constexpr uint64_t kMaxArchiveUploadBytes = 4ull << 30;  // as it comes, compressed or not

struct Unpacked {
  uint64_t entries = 0;  // without those that were left out: devices, sockets, FIFOs
  uint64_t bytes = 0;
};

class ArchiveUpload {
 public:
  // The file has no name: it goes with this object, whatever happens to the process.
  static Result<ArchiveUpload> create(const std::string& directory);
  // One that is whole already.
  static ArchiveUpload of(Fd file) { return ArchiveUpload(std::move(file)); }

  Result<void> append(std::string_view bytes);
  // Changes an entry on its way; false: it is left out.
  using Edit = std::function<bool(store::TarEntry& entry)>;
  // Beneath `path`. A refusal names the entry.
  Task<Result<Unpacked>> unpack(Files& files, std::string path, Edit edit = {});

 private:
  explicit ArchiveUpload(Fd file) : file_(std::move(file)) {}
  Task<Result<void>> check();

  Fd file_;
  uint64_t bytes_ = 0;
};

// As a tar archive has it: permission bits, owner, time and target.
store::TarEntry to_tar_entry(const FileEntry& entry);

// The tree as a tar archive, piece by piece.
class ArchiveDownload {
 public:
  explicit ArchiveDownload(std::unique_ptr<TreeReader> tree) : tree_(std::move(tree)) {}
  // Empty at the end.
  Task<Result<std::string>> next();

 private:
  std::unique_ptr<TreeReader> tree_;
  uint64_t left_ = 0;    // of the entry under way
  std::string follows_;  // its padding
  bool ended_ = false;
};

}  // namespace atl::sandbox
