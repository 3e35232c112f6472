// File operations: what a channel opened by kOpenFiles asks for, and the records that flow on it.
// They are carried out inside the isolate by a worker process with the ids, filter and Landlock
// domain of the named user's programs, so a path never means anything outside and the worker can do
// nothing that a program could not. The agent itself only passes the bytes on.
//
// A record is a length (u32, of the payload), a type (u8) and a payload. The worker ends with kDone
// or kFailed; a channel that closes without either lost its worker, and the close says how. Records
// towards the worker come only for kWrite (kBytes…, kDone), kUnpack and kRestore (kEntry, its
// kBytes…, the next kEntry, …, kDone) and kPick (kEntry…, kDone). A written file has no name before
// kDone, so an upload that breaks leaves nothing; each unpacked file appears whole, when the record
// after its last byte has come.
//
// Symbolic links are followed as programs follow them, but not those of /proc that lead to
// another process's files (ELOOP). The last part of a path is followed only by kList, kRead, kFind,
// kWatch, kPack, kUnpack and kChange. What cannot be read because it is no regular file is ENXIO, a
// directory EISDIR. Lists, searches and packs leave out what has a path of more than kMaxPathBytes
// (kPack: ENAMETOOLONG) and do not enter /proc and /sys unless they begin there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/frame.h"
#include "agent/protocol.h"
#include "base/result.h"

namespace atl::agent {

enum class FileOperation : uint8_t {
  kStat = 0,    // kEntry with attributes
  kList = 1,    // kEntry for each, sorted by path, after `cursor`, `depth` levels, at most `limit`
  kRead = 2,    // kEntry, then kBytes: at most `length` bytes from `offset` to its size
  kWrite = 3,   // temporary file, rename on kDone; then kEntry of the new file
  kMove = 4,    // to `target`; kEntry
  kRemove = 5,  // nothing
  kMakeDirectory = 6,  // kEntry
  kChange = 7,         // mode and attributes; kEntry with attributes
  kFind = 8,           // kMatch: names that fit the glob `target`, lines that hold `text`
  kWatch = 9,          // kReady, then kChange until the channel is given up
  kPack = 10,          // the tree beneath `path`: kEntry with a relative path, then its kBytes
  kUnpack = 11,        // entries beneath `path`
  kPorts = 12,         // kPort for each listening TCP socket
  // kEntry for all beneath `path` that is on its file system, sorted by path; modified_ns is when
  // anything about it last changed, which no program can set.
  kTree = 13,
  kPick = 14,  // as kPack what the paths of entries name: with attributes, without inodes
  // What kPick gave, with owners, whole modes and attributes; kOther takes away what is there.
  kRestore = 15,
};

// Bits of FileRequest::flags.
enum class FileFlag : uint32_t {
  kParents = 1 << 0,    // kWrite, kMakeDirectory, kMove: missing directories are made
  kRecursive = 1 << 1,  // kRemove, kWatch
  kReplace = 1 << 2,    // kWrite, kMove: what stands there may be replaced
  kSetMode = 1 << 3,    // kChange: `mode` counts
};
constexpr uint32_t bit(FileFlag flag) { return static_cast<uint32_t>(flag); }
// Where programs leave files that are kept.
inline constexpr char kOutputsDirectory[] = "/tmp/outputs";
inline constexpr uint32_t kAllFileFlags = 0xf;

inline constexpr size_t kMaxAttributes = 64;
inline constexpr size_t kMaxAttributeNameBytes = 255;
// A program may set no longer one than the second: see filter/checks.h.
inline constexpr size_t kMaxAttributeBytes = 4096, kMaxSetAttributeBytes = 1024;
inline constexpr size_t kMaxRecordBytes = 1024 * 1024;  // a kEntry with all its attributes
inline constexpr size_t kMaxFindTextBytes = 4096;
inline constexpr size_t kMaxMatchTextBytes = 1024;
inline constexpr uint32_t kMaxListEntries = 10'000;  // the largest `limit` of kList and kFind

struct FileAttribute {
  std::string name;                  // "user.…"
  std::optional<std::string> value;  // nothing: to be removed
};

struct FileRequest {
  FileOperation operation = FileOperation::kStat;
  std::string user = "user";
  std::string path;    // absolute
  std::string target;  // kMove: absolute; kFind: a glob of names or with a / paths; kPack: of paths
  std::string text;    // kFind: one line or a part of it
  std::string cursor;  // kList: the path of the last entry of the page before
  uint64_t offset = 0;  // kRead
  uint64_t length = 0;  // kRead
  uint32_t mode = 0;    // kWrite, kMakeDirectory: 0 is the usual one
  uint32_t depth = 1;   // kList, kFind; 0: all
  uint32_t limit = 0;   // kList, kFind; 0: kMaxListEntries
  uint32_t flags = 0;
  std::vector<FileAttribute> attributes;  // kChange, kWrite
};

enum class EntryType : uint8_t { kFile = 0, kDirectory = 1, kSymlink = 2, kOther = 3 };

struct FileEntry {
  std::string path;  // absolute, or relative to the root of a kPack or kUnpack
  EntryType type = EntryType::kFile;
  uint32_t mode = 0;  // permission bits
  uint32_t uid = 0, gid = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  uint64_t inode = 0;
  std::string target;     // of a symlink
  std::string hard_link;  // kPack, kUnpack: an earlier path that is the same file
  std::vector<FileAttribute> attributes;
};

enum class ChangeKind : uint8_t {
  kCreated = 0,
  kWritten = 1,
  kRemoved = 2,
  kMoved = 3,
  kAttributes = 4,
  kOverflow = 5,  // some changes were lost
};

struct FileChange {
  ChangeKind kind = ChangeKind::kCreated;
  EntryType type = EntryType::kFile;  // as far as known
  std::string path;
  std::string target;  // kMoved
};

struct FileMatch {
  FileEntry entry;
  uint64_t line = 0;  // 0: by name alone
  std::string text;   // the line, cut
};

struct ListeningPort {
  uint16_t port = 0;
  std::string address;
};

struct FileFailure {
  int32_t system_errno = 0;
  std::string operation;
  std::string path;  // what it was about, if not the request's
};

// Bits of the byte in kDone.
enum class DoneFlag : uint8_t {
  kExisted = 1 << 0,   // kWrite, kMakeDirectory, kMove: something stood there before
  kCutShort = 1 << 1,  // kFind: a limit ended it
};
constexpr uint8_t bit(DoneFlag flag) { return static_cast<uint8_t>(flag); }
inline constexpr uint8_t kAllDoneFlags = 0x3;

enum class RecordType : uint8_t {
  kEntry = 0,
  kBytes = 1,
  kChange = 2,
  kMatch = 3,
  kPort = 4,
  kReady = 5,
  kDone = 6,
  kFailed = 7,
};

struct FileRecord {
  RecordType type;
  std::string_view payload;
};

std::string encode(uint32_t channel, const FileRequest& request);  // a whole kOpenFiles frame
Result<FileRequest> decode_file_request(std::string_view payload);

std::string encode_record(RecordType type, std::string_view payload = {});
// To be followed by a payload of that length.
std::string encode_record_header(RecordType type, size_t length);
std::string encode_record(const FileEntry& entry);
std::string encode_record(const FileChange& change);
std::string encode_record(const FileMatch& match);
std::string encode_record(const ListeningPort& port);
std::string encode_record(const FileFailure& failure);
std::string encode_done(uint8_t flags = 0);  // DoneFlags
Result<FileEntry> decode_entry(std::string_view payload);
Result<FileChange> decode_change(std::string_view payload);
Result<FileMatch> decode_match(std::string_view payload);
Result<ListeningPort> decode_port(std::string_view payload);
Result<FileFailure> decode_failure(std::string_view payload);
Result<uint8_t> decode_done(std::string_view payload);

// Cuts the bytes of a channel into records.
class RecordReader {
 public:
  void add(std::string_view bytes);
  // The next whole record, valid until the next call, or nothing yet, or an error for good.
  Result<std::optional<FileRecord>> next();
  bool empty() const { return begin_ == buffer_.size(); }

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

}  // namespace atl::agent
