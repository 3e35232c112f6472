// Operation kUnpack: entries become files beneath a directory, and nowhere else. Every name is
// looked up from that directory without following a link, so neither a link of the archive nor one
// that a program puts there meanwhile leads out of it.
//
// A file appears whole, replacing what had its name. Permissions lose the setuid, setgid and sticky
// bits; the owner is whoever unpacks. Sockets, FIFOs and devices are passed over.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "agent/file_draft.h"
#include "agent/file_protocol.h"
#include "agent/file_wire.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

Result<void> unpack_tree(const FileRequest& request, FileWire& wire);

class Unpacking {
 public:
  explicit Unpacking(Fd root) : root_(std::move(root)) {}

  // An entry ends the one before.
  Result<void> begin(const FileEntry& entry);
  Result<void> add(std::string_view bytes);
  Result<void> finish();

 private:
  struct OpenFile {
    FileEntry entry;  // with its path made plain
    Fd directory;
    std::string name;
    FileDraft draft;
    uint64_t missing_bytes;
  };
  struct LateChange {  // of a directory, which changes while files are put into it
    std::string path;
    uint32_t mode;
    int64_t modified_ns;
  };

  Result<Fd> open_parent(const std::string& path);
  Result<void> make(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_directory(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_symlink(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_hard_link(const FileEntry& entry, int directory, const std::string& name);
  Result<void> end_file();

  Fd root_;
  std::optional<OpenFile> open_;
  std::vector<LateChange> late_changes_;
  std::unordered_set<uint64_t> inodes_;  // of the files unpacked so far
  uint64_t entries_ = 0;
};

// Without "./" and slashes at the end; nothing for one that is absolute, empty or has a "..".
std::optional<std::string> plain_path(std::string_view path);

}  // namespace atl::agent
