// Files: what can be done to the files of one sandbox, as typed calls. Each is carried out inside
// by a worker with the ids of the named user, so a path never means anything outside. Answers are
// bounded, and what they claim is checked: entries lie beneath what was asked, sizes add up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/file_call.h"

namespace atl::sandbox {

using agent::FileEntry;

inline constexpr size_t kMaxPageEntries = 1000;
inline constexpr uint32_t kMaxDepth = 64;

// The bytes of one regular file, or of a part of it, exactly as many as promised.
class FileReader {
 public:
  FileReader(std::unique_ptr<FileCall> call, FileEntry entry, uint64_t bytes)
      : call_(std::move(call)), entry_(std::move(entry)), left_(bytes) {}
  const FileEntry& entry() const { return entry_; }
  uint64_t bytes_left() const { return left_; }
  // Valid until the next call; empty at the end. An error when the file gave less or the sandbox
  // failed.
  Task<Result<std::string_view>> next();

 private:
  std::unique_ptr<FileCall> call_;
  FileEntry entry_;
  uint64_t left_;
};

// An entry that was made, and whether something stood there before.
struct MadeEntry {
  FileEntry entry;
  bool existed = false;
};

// A file that is being written. It takes effect under its name at finish(), all at once; destroyed
// before that it leaves nothing.
class FileWriter {
 public:
  FileWriter(std::unique_ptr<FileCall> call, std::string path)
      : call_(std::move(call)), path_(std::move(path)) {}
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<MadeEntry>> finish();

 private:
  std::unique_ptr<FileCall> call_;
  std::string path_;
};

// The entries of a tree, each file followed by its bytes.
class TreeReader {
 public:
  explicit TreeReader(std::unique_ptr<FileCall> call) : call_(std::move(call)) {}
  void set_deadline(SteadyTime deadline) { call_->set_deadline(deadline); }
  // The next entry, its path relative to the root; nothing at the end. Only after all bytes of the
  // one before.
  Task<Result<std::optional<FileEntry>>> next_entry();
  // Bytes of the entry, valid until the next call; empty at its end.
  Task<Result<std::string_view>> next_bytes();

 private:
  std::unique_ptr<FileCall> call_;
  std::vector<std::string> links_;  // sorted paths of symlinks: nothing may lie beneath them
  uint64_t left_ = 0;
};

class TreeWriter {
 public:
  explicit TreeWriter(std::unique_ptr<FileCall> call) : call_(std::move(call)) {}
  Task<Result<void>> add(FileEntry entry);
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();

 private:
  std::unique_ptr<FileCall> call_;
};

enum class IfExists : unsigned char { kFail, kReplace };
enum class Parents : unsigned char { kMustExist, kMake };

struct WriteFile {
  std::string path;
  uint32_t mode = 0;  // 0: the usual one
  Parents parents = Parents::kMake;
  IfExists if_exists = IfExists::kReplace;
};

struct ListFiles {
  std::string path;
  std::string cursor;
  uint32_t depth = 1;
  uint32_t limit = 100;
};

struct FindFiles {
  std::string path;
  std::string name;  // a glob; empty: any
  std::string text;  // empty: names alone
  uint32_t depth = kMaxDepth;
  uint32_t limit = 100;
};

struct FoundFiles {
  std::vector<agent::FileMatch> matches;
  bool truncated = false;
};

class Files {
 public:
  Files(std::shared_ptr<Sandbox> sandbox, std::string user)
      : sandbox_(std::move(sandbox)), user_(std::move(user)) {}

  // Of a symlink itself, not of what it names.
  Task<Result<FileEntry>> stat(std::string path);
  Task<Result<std::vector<FileEntry>>> list(ListFiles request);
  Task<Result<std::unique_ptr<FileReader>>> read(std::string path, uint64_t offset,
                                                 uint64_t length);
  Task<Result<std::unique_ptr<FileWriter>>> write(WriteFile request);
  Task<Result<MadeEntry>> move(std::string path, std::string to, IfExists if_exists);
  enum class Depth : unsigned char { kOne, kTree };
  Task<Result<void>> remove(std::string path, Depth depth);
  Task<Result<MadeEntry>> make_directory(std::string path, uint32_t mode, Parents parents);
  Task<Result<FileEntry>> change_mode(std::string path, uint32_t mode);
  Task<Result<FileEntry>> change_attributes(std::string path,
                                            std::vector<agent::FileAttribute> attributes);
  Task<Result<FoundFiles>> find(FindFiles request);
  // Ready: changes from now on are told, as kChange records.
  Task<Result<std::unique_ptr<FileCall>>> watch(std::string path, Depth depth);
  // `glob`: only what is at a path beneath it that fits; empty: all.
  Task<Result<std::unique_ptr<TreeReader>>> pack(std::string path, std::string glob = "");
  Task<Result<std::unique_ptr<TreeWriter>>> unpack(std::string path);
  Task<Result<std::vector<agent::ListeningPort>>> ports();

 private:
  agent::FileRequest request_for(agent::FileOperation operation, std::string path) const;
  // An operation whose whole answer is one entry.
  Task<Result<MadeEntry>> one_entry(agent::FileRequest request);
  Task<Result<FileEntry>> plain_entry(agent::FileRequest request);

  std::shared_ptr<Sandbox> sandbox_;
  std::string user_;
};

}  // namespace atl::sandbox
