// Tree: the root file system of an image while it is put together from archives. Every name is
// resolved inside it, whatever links the archives have made, so nothing outside is ever touched; it
// is used in a jail all the same.
//
// What an image cannot have is refused (ids over 65535, "..", names of more than 255 bytes) or left
// out (devices, sockets, FIFOs, extended attributes, the set-user-ID and set-group-ID bits of
// files, which sandboxes ignore anyway).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "builder/archive_file.h"

namespace atl::builder {

inline constexpr size_t kMaxDepth = 128;

// The parts of a path without empty and "." ones; ".." and a part that is too long are refused.
Result<std::vector<std::string>> split_path(std::string_view path);

class Tree {
 public:
  // Made if it is not there.
  static Result<Tree> open(const std::string& path);

  // What an OCI layer hides of those below it; the order of its entries does not matter.
  Result<void> apply_whiteouts(ArchiveFile& layer);
  enum class Kind : unsigned char { kPlain, kLayer };
  // Adds the entries that `place` says yes to, after it has changed them if it likes; those of a
  // kLayer that hide others are not files.
  using Place = std::function<bool(ArchiveEntry& entry)>;
  Result<void> add(ArchiveFile& archive, Kind kind, const Place& place);
  // Once nothing is added any more: directories get the times that archives gave them, and what was
  // made since the tree was opened gets one fixed time, so that the same input gives one image.
  Result<void> settle_times();

  uint64_t left_out() const { return left_out_; }
  int root() const { return root_.get(); }

 private:
  struct DirectoryTime {
    std::string path;
    int64_t modified;
  };
  enum class Missing : unsigned char { kMake, kFail };

  Tree(Fd root, int64_t opened_at) : root_(std::move(root)), opened_at_(opened_at) {}
  Result<int> parent_of(const std::vector<std::string>& parts, Missing missing);
  Result<void> add_entry(ArchiveFile& archive, const ArchiveEntry& entry,
                         const std::vector<std::string>& parts);
  Result<void> add_file(ArchiveFile& archive, const ArchiveEntry& entry, int parent,
                        const std::string& name);
  Result<void> add_directory(const ArchiveEntry& entry, int parent, const std::string& name);
  Result<void> add_link(const ArchiveEntry& entry, int parent, const std::string& name);
  Result<void> set_owner(const ArchiveEntry& entry, int parent, const std::string& name);

  Fd root_;
  int64_t opened_at_;        // seconds
  std::string parent_path_;  // of parent_, as the last entry named it
  Fd parent_;
  std::vector<DirectoryTime> directory_times_;
  uint64_t left_out_ = 0;
};

// Removes what is called `name` there, with everything beneath it; nothing is a success.
Result<void> remove_at(int directory, const std::string& name);
Result<void> empty_directory(int directory);

}  // namespace atl::builder
