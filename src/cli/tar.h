// Tar archives (ustar with pax records) as a stream: what `atoll cp -r` sends and receives. The
// reader takes bytes of strangers: everything in them is bounded, and only files, directories and
// links that stay inside become anything.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "cli/local_tree.h"

namespace atl::cli {

// A directory as the bytes of an archive; names are relative to it. Sockets, devices and pipes are
// left out.
class TarWriter {
 public:
  static Result<TarWriter> open(const std::string& directory);

  // 0 at the end.
  Result<size_t> read(std::span<char> piece);

 private:
  explicit TarWriter(std::string directory) : directory_(std::move(directory)) {}

  Result<void> next();
  Result<void> add(const std::filesystem::directory_entry& entry);

  std::string directory_;
  std::filesystem::recursive_directory_iterator at_;
  std::string pending_;
  size_t pending_sent_ = 0;
  Fd file_;
  std::string file_name_;
  uint64_t file_left_ = 0;
  bool is_ended_ = false;
};

class TarReader {
 public:
  explicit TarReader(LocalTree& tree) : tree_(tree) {}

  Result<void> feed(std::string_view bytes);
  // kCorrupt when the archive does not end as one.
  Result<void> finish();
  uint64_t files() const { return files_; }
  // Entries that are no file, directory or link inside.
  uint64_t skipped() const { return skipped_; }

 private:
  struct Header {
    char type = 0;
    unsigned mode = 0;
    uint64_t size = 0;
    std::string name;
    std::string link;
  };
  Result<void> take_header();
  Result<void> start_entry(Header header);
  Result<void> take_content(std::string_view bytes);
  Result<void> end_entry();
  Result<void> take_records();

  LocalTree& tree_;
  std::string block_;
  Header current_;
  uint64_t content_left_ = 0;
  uint64_t padding_left_ = 0;
  Fd file_;
  // Of the pax records in front of the next entry.
  std::string records_;
  std::optional<std::string> next_name_, next_link_;
  std::optional<uint64_t> next_size_;
  bool is_ended_ = false;
  uint64_t files_ = 0;
  uint64_t skipped_ = 0;
};

}  // namespace atl::cli
