#include "egress/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "store/toml_section.h"

namespace atl::egress {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr uint64_t kMaxReadBytes = kAuditSegmentBytes + (1 << 20);
constexpr uint64_t kMaxKeptBytes = 1ull << 40;
constexpr size_t kMaxFileBytes = 16 * 1024;
constexpr unsigned kOffsetBits = 32;

Result<std::string> read_at(int file, uint64_t from, size_t most) {
  std::string bytes(most, '\0');
  ssize_t count = pread(file, bytes.data(), most, static_cast<off_t>(from));
  if (count < 0) return Error::system("read an audit log");
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

bool is_missing(const Error& error) { return error.system_errno() == ENOENT; }

// Where a page begins.
struct Cursor {
  uint64_t number;
  uint64_t offset;
  uint64_t value() const { return number << kOffsetBits | offset; }
};

// The segment that is read after `number`, of which nothing is left to read; nothing: none is.
Result<std::optional<uint64_t>> next_segment(int directory, const SandboxId& id, uint64_t number) {
  struct stat status;
  std::string next = segment_name(id, number + 1);
  if (fstatat(directory, next.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return std::optional(number + 1);
  std::string name = segment_name(id, number);
  bool is_there = fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && status.st_size > 0) return std::optional<uint64_t>();
  // It was given up, and perhaps others after it.
  ATOLL_TRY(auto segments, segments_of(directory, id));
  auto found = segments.upper_bound(number);
  return found == segments.end() ? std::optional<uint64_t>() : std::optional(found->first);
}

Result<void> read_lines(int file, Cursor& at, size_t most_bytes, AuditPage& page) {
  // An offset in the middle of a row is none that we gave.
  if (at.offset > 0) {
    ATOLL_TRY(std::string before, read_at(file, at.offset - 1, 1));
    if (before != "\n")
      return Error(Code::kInvalid, "no row begins there").with_reason("invalid_cursor");
  }
  ATOLL_TRY(std::string text, read_at(file, at.offset, std::min(most_bytes, kReadBytes)));
  size_t start = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', start)) {
    page.lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  at.offset += start;
  return {};
}

}  // namespace

Result<AuditRetention> read_retention(const std::string& path) {
  auto file = open_file(path, O_RDONLY);
  if (!file && is_missing(file.error())) return AuditRetention();
  if (!file) return std::move(file).error();
  struct stat status;
  if (fstat(file->get(), &status) != 0) return Error::system("stat " + path);
  if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return Error(Code::kDenied, path + " must belong to root and be writable by nobody else");
  ATOLL_TRY(std::string text, read_all(file->get(), kMaxFileBytes));
  ATOLL_TRY(store::TomlDocument document, store::TomlDocument::parse(text, path));
  store::TomlSection top(document, document.root(), "");
  AuditRetention retention;
  std::string when_full = "drop_oldest";
  top.size("keep", {2 * kAuditSegmentBytes, kMaxKeptBytes}, retention.bytes);
  top.text("when_full", when_full);
  if (when_full != "drop_oldest" && when_full != "refuse")
    top.refuse("when_full", "must be drop_oldest or refuse");
  top.finish();
  if (document.error()) return *document.error();
  using WhenFull = AuditRetention::WhenFull;
  retention.when_full = when_full == "refuse" ? WhenFull::kRefuse : WhenFull::kDropOldest;
  return retention;
}

Result<AuditFile> AuditFile::open(int directory, SandboxId id, const AuditRetention& retention) {
  AuditFile file(directory, id, retention);
  ATOLL_TRY_VOID(file.recover());
  return file;
}

Result<void> AuditFile::recover() {
  ATOLL_TRY(bytes_, segments_of(directory_, id_));
  for (const auto& [number, bytes] : bytes_)
    ATOLL_TRY_VOID(recover_segment(number, number == bytes_.rbegin()->first));
  return {};
}

Result<void> AuditFile::recover_segment(uint64_t number, bool is_last) {
  ATOLL_TRY(Fd file,
            open_at(directory_, segment_name(id_, number), O_RDWR | O_APPEND | O_NOFOLLOW));
  ATOLL_TRY(std::string text, read_all(file.get(), kMaxReadBytes));
  size_t end = text.rfind('\n');
  end = end == text.npos ? 0 : end + 1;
  if (is_last && end != text.size() && ftruncate(file.get(), static_cast<off_t>(end)) != 0)
    return Error::system("cut off half a row");
  if (is_last) text.resize(end);
  bytes_[number] = text.size();
  if (is_last) file_ = std::move(file);
  if (text.empty() && is_last) return {};
  if (number > 0) {
    ATOLL_TRY(AuditLink before, link_before(text));
    bool is_oldest = number == bytes_.begin()->first;
    if (!is_oldest && before != link_)
      return Error(Code::kCorrupt, "a segment does not go on where the one before it ends");
    link_ = std::move(before);
  }
  ATOLL_TRY(link_, verify_rows(text, std::move(link_)));
  return {};
}

uint64_t AuditFile::bytes() const {
  uint64_t all = 0;
  for (const auto& [number, bytes] : bytes_) all += bytes;
  return all;
}

Result<void> AuditFile::begin_segment(uint64_t tenant, WallTime time) {
  bool is_full = bytes() + kAuditSegmentBytes > retention_.bytes;
  if (is_full && retention_.when_full == AuditRetention::WhenFull::kRefuse)
    return Error(Code::kExhausted, "the audit log is full").with_reason("audit_full");
  uint64_t next = bytes_.rbegin()->first + 1;
  int flags = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW;
  ATOLL_TRY(file_, open_at(directory_, segment_name(id_, next), flags, 0600));
  bytes_[next] = 0;
  AuditRow row{.event = AuditEvent::kNote};
  row.reason = is_full ? kOldestDropped : kContinued;
  row.before = link_.chain;
  ATOLL_TRY_VOID(write_row(tenant, row, time));
  // Only now: the segment that goes on from what is given up says so.
  while (bytes_.size() > 2 && bytes() + kAuditSegmentBytes > retention_.bytes) {
    ATOLL_TRY_VOID(give_up_segment(directory_, id_, bytes_.begin()->first));
    bytes_.erase(bytes_.begin());
  }
  return {};
}

Result<void> AuditFile::write_row(uint64_t tenant, const AuditRow& row, WallTime time) {
  AuditLink after = link_;
  std::string line =
      close_row(after, fmt::format("{{\"n\":{},\"sandbox\":\"{}\",\"tenant\":{},{}", link_.rows + 1,
                                   id_.view(), tenant, format_members(row, time)));
  ATOLL_TRY_VOID(write_all(file_.get(), line));
  bytes_.rbegin()->second += line.size();
  link_ = std::move(after);
  return {};
}

Result<void> AuditFile::append(uint64_t tenant, const AuditRow& row, WallTime time) {
  if (bytes_.empty()) {
    int flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW;
    ATOLL_TRY(file_, open_at(directory_, segment_name(id_, 0), flags, 0600));
    bytes_[0] = 0;
  }
  const auto& [number, bytes] = *bytes_.rbegin();
  if (number > 0 && bytes == 0) {  // a crash left it without its first row
    AuditRow first{.event = AuditEvent::kNote};
    first.reason = kContinued;
    first.before = link_.chain;
    ATOLL_TRY_VOID(write_row(tenant, first, time));
  }
  if (bytes_.rbegin()->second >= kAuditSegmentBytes) ATOLL_TRY_VOID(begin_segment(tenant, time));
  return write_row(tenant, row, time);
}

Result<AuditPage> AuditFile::read(int directory, SandboxId id, uint64_t from, size_t most_bytes) {
  AuditPage page{.lines = {}, .next = from};
  Cursor at{from >> kOffsetBits, from & ((1ull << kOffsetBits) - 1)};
  while (page.lines.empty()) {
    auto file = open_at(directory, segment_name(id, at.number), O_RDONLY | O_NOFOLLOW);
    if (!file && !is_missing(file.error())) return std::move(file).error();
    if (file) ATOLL_TRY_VOID(read_lines(file->get(), at, most_bytes, page));
    page.next = at.value();
    if (!page.lines.empty()) break;
    ATOLL_TRY(auto next, next_segment(directory, id, at.number));
    if (!next) break;
    at = {.number = *next, .offset = 0};
  }
  return page;
}

Result<void> AuditFile::remove(int directory, SandboxId id) {
  ATOLL_TRY(auto segments, segments_of(directory, id));
  segments[0];  // also when it was given up
  for (const auto& [number, bytes] : segments)
    if (unlinkat(directory, segment_name(id, number).c_str(), 0) != 0 && errno != ENOENT)
      return Error::system("remove an audit log");
  return {};
}

Result<void> AuditFile::sweep(int directory, uint64_t most_bytes,
                              const std::function<bool(const SandboxId&)>& is_open) {
  struct Log {
    int64_t changed_at_ns = 0;
    uint64_t bytes = 0;
  };
  ATOLL_TRY(auto segments, list_segments(directory));
  uint64_t total = 0;
  std::map<SandboxId, Log> logs;
  for (const SegmentFile& one : segments) {
    total += one.bytes;
    Log& log = logs[one.id];
    log = {.changed_at_ns = std::max(log.changed_at_ns, one.changed_at_ns),
           .bytes = log.bytes + one.bytes};
  }
  std::multimap<int64_t, SandboxId> removable;
  for (const auto& [id, log] : logs)
    if (!is_open(id)) removable.emplace(log.changed_at_ns, id);
  for (const auto& [time, id] : removable) {
    if (total <= most_bytes) break;
    ATOLL_TRY_VOID(remove(directory, id));
    total -= logs[id].bytes;
  }
  return {};
}

Result<uint64_t> verify_audit(std::string_view text, const SandboxId& id) {
  ATOLL_TRY(AuditLink end, verify_rows(text, first_link(id)));
  return end.rows;
}

}  // namespace atl::egress
