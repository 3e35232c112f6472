// A walk through a tree in the order of the bytes of the paths: "a", "a-b", "a/b". Memory is
// bounded by the batch for each level, not by the size of the directories; a directory with more
// names than a batch is read several times. It holds two descriptors at most, so depth costs none.
//
// Links are not followed and /proc and /sys not entered. What vanishes meanwhile is left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

struct WalkOptions {
  uint32_t depth = 0;  // levels; 0: all
  std::string after;   // only what comes after this relative path
  size_t batch = 16 * 1024;
  // kOfRoot: what is mounted in it is told, and not entered.
  enum class FileSystem : uint8_t { kAny, kOfRoot } file_system = FileSystem::kAny;
  enum class Unreadable : uint8_t { kSkip, kFail } unreadable = Unreadable::kSkip;
};

struct Walked {
  int directory;     // valid until the next call
  std::string name;  // in it
  std::string path;  // relative to the root of the walk
};

class FileWalk {
 public:
  // `root` is a directory, opened for reading.
  FileWalk(Fd root, WalkOptions options);

  // An entry is told even if its path is longer than a path may be; nothing beneath such a one.
  Result<std::optional<Walked>> next();

 private:
  // A name stands for itself, a name with a slash for what is beneath it.
  struct Level {
    std::string path;  // relative; empty for the root
    std::vector<std::string> keys;
    size_t next = 0;
    bool more = true;  // than keys holds
    std::string last;  // key of the batches before
  };

  void enter(std::string path);
  Result<void> read_batch(Level& level);
  bool is_wanted(const Level& level, const std::string& key) const;
  void take_name(Level& level, const char* name, unsigned char type) const;
  // False: it is not there any more, or not to be entered.
  Result<bool> open_level(const std::string& path);
  bool is_elsewhere(int directory) const;
  Result<void> refill();

  Fd root_;
  WalkOptions options_;
  std::vector<Level> levels_;
  Fd current_;  // the directory of `current_path_`
  std::string current_path_;
};

}  // namespace atl::agent
