// Operations kUnpack and kRestore: entries become files beneath a directory, and nowhere else.
// Every name is looked up from that directory without following a link, so neither a link of the
// archive nor one that a program puts there meanwhile leads out of it.
//
// A file appears whole, replacing what had its name. Permissions lose the setuid, setgid and sticky
// bits; the owner is whoever unpacks. Sockets, FIFOs and devices are passed over. What is restored
// has its owner, all bits of its mode and its attributes, and takes the place of whatever stands
// there.
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
Result<void> restore_tree(const FileRequest& request, FileWire& wire);

class Unpacking {
 public:
  enum class Fidelity : uint8_t { kPlain, kExact };
  explicit Unpacking(Fd root, Fidelity fidelity = Fidelity::kPlain)
      : root_(std::move(root)), fidelity_(fidelity) {}

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

  Result<Fd> open_parent(const std::string& path);
  Result<void> make(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_directory(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_symlink(const FileEntry& entry, int directory, const std::string& name);
  Result<void> make_hard_link(const FileEntry& entry, int directory, const std::string& name);
  Result<void> end_file();
  Result<void> take_away(const std::string& path);
  // So that what is made now has room: only exactly.
  Result<void> clear(int directory, const std::string& name, EntryType type);
  // Owner, mode and attributes of what has a descriptor.
  Result<void> dress(int fd, const FileEntry& entry);
  bool is_exact() const { return fidelity_ == Fidelity::kExact; }

  Fd root_;
  Fidelity fidelity_;
  std::optional<OpenFile> open_;
  std::vector<FileEntry> late_changes_;  // of directories, into which files are still put
  std::unordered_set<uint64_t> inodes_;  // of the files unpacked so far
  uint64_t entries_ = 0;
};

// Without "./" and slashes at the end; nothing for one that is absolute, empty or has a "..".
std::optional<std::string> plain_path(std::string_view path);

}  // namespace atl::agent
