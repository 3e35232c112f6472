// What the user asked for about the state of sandboxes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace atl::cli {

struct PauseCommand {
  enum class What : unsigned char { kPause, kResume };
  What what = What::kPause;
  std::vector<std::string> ids;
};
struct SnapshotCommand {
  enum class What : unsigned char {
    kCreate,
    kList,
    kTree,
    kShow,
    kRemove,
    kSeal,
    kExport,
    kImport
  };
  What what = What::kList;
  std::vector<std::string> ids;  // of a sandbox, of a snapshot, or of snapshots
  std::string label;
  enum class Stage : unsigned char { kLocal, kSealed };
  Stage stage = Stage::kLocal;  // of what is made
  std::string file;             // of a sealed one; "-" is a standard stream
  std::vector<std::pair<std::string, std::string>> metadata;
  // What becomes of the children of what is removed.
  enum class Children : unsigned char { kRefuse, kAdopt };
  Children children = Children::kRefuse;
};
struct DiffCommand {
  std::string from;  // a snapshot, or a sandbox: what it was last kept as
  std::string to;    // a snapshot or a sandbox; empty: the sandbox that `from` is
  std::string path, text;
};
struct RollbackCommand {
  std::string id, snapshot;
};
struct ReplayCommand {
  std::string id, snapshot;
  std::vector<std::string> runs;  // empty: all since the snapshot
};
struct ForkCommand {
  std::string id;
  uint32_t count = 1;
};

}  // namespace atl::cli
