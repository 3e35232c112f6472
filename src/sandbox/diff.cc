#include "sandbox/diff.h"

#include <algorithm>

#include "base/log.h"
#include "base/utf8.h"
#include "sandbox/text_diff.h"
#include "sandbox/tree_side.h"

namespace atl::sandbox {

namespace {

using agent::EntryType;

constexpr std::chrono::minutes kReaderTime{5};  // what is left of one that was forgotten ends then
constexpr uint64_t kMaxComparedBytes = 256ull << 20;

std::optional<uint64_t> size_of(const FileEntry& entry) {
  return entry.type == EntryType::kFile ? std::optional(entry.size) : std::nullopt;
}

Task<Result<std::string>> read_whole(std::shared_ptr<Sandbox> sandbox, std::string path,
                                     uint64_t limit) {
  Files files(sandbox, kReader);
  ATOLL_CO_TRY(std::unique_ptr<FileReader> reader, co_await files.read(path, 0, limit));
  std::string bytes;
  while (true) {
    ATOLL_CO_TRY(std::string_view part, co_await reader->next());
    if (part.empty()) co_return bytes;
    bytes += part;
  }
}

// Piece by piece: files may be larger than the memory that atolld shall use.
Task<Result<bool>> have_same_bytes(std::unique_ptr<FileReader> before,
                                   std::unique_ptr<FileReader> after) {
  std::string_view was, is;
  while (true) {
    if (was.empty()) {
      ATOLL_CO_TRY(was, co_await before->next());
    }
    if (is.empty()) {
      ATOLL_CO_TRY(is, co_await after->next());
    }
    if (was.empty() || is.empty()) co_return was.empty() && is.empty();
    size_t count = std::min(was.size(), is.size());
    if (was.substr(0, count) != is.substr(0, count)) co_return false;
    was.remove_prefix(count);
    is.remove_prefix(count);
  }
}

// Two sandboxes that exist only to be read, and what they begin with.
class Comparison {
 public:
  Comparison(std::shared_ptr<Sandbox> before, std::shared_ptr<Sandbox> after,
             const DiffRequest& request)
      : before_(std::move(before)), after_(std::move(after)), request_(request) {}

  Task<Result<Diff>> run() {
    ATOLL_CO_TRY(TreeSide before, co_await TreeSide::open(before_, request_.path));
    ATOLL_CO_TRY(TreeSide after, co_await TreeSide::open(after_, request_.path));
    while (before.entry() || after.entry()) {
      if (diff_.changes.size() >= request_.limit) {
        diff_.truncated = true;
        break;
      }
      ATOLL_CO_TRY_VOID(co_await compare(before, after));
    }
    co_return std::move(diff_);
  }

 private:
  // What is first on either side.
  Task<Result<void>> compare(TreeSide& before, TreeSide& after) {
    bool removed = before.entry() && (!after.entry() || before.entry()->path < after.entry()->path);
    if (removed) {
      const FileEntry& gone = *before.entry();
      diff_.changes.push_back(
          {DiffChange::What::kRemoved, gone.path, gone.type, size_of(gone), std::nullopt});
      co_return co_await before.advance();
    }
    bool added = !before.entry() || after.entry()->path < before.entry()->path;
    if (added) {
      const FileEntry& made = *after.entry();
      diff_.changes.push_back(
          {DiffChange::What::kAdded, made.path, made.type, std::nullopt, size_of(made)});
      co_return co_await after.advance();
    }
    FileEntry was = *before.entry(), is = *after.entry();
    ATOLL_CO_TRY(bool same, co_await are_same(was, is));
    if (!same)
      diff_.changes.push_back(
          {DiffChange::What::kChanged, is.path, is.type, size_of(was), size_of(is)});
    ATOLL_CO_TRY_VOID(co_await before.advance());
    co_return co_await after.advance();
  }

  Task<Result<bool>> are_same(FileEntry was, FileEntry is) {
    if (!same_kind(was, is)) co_return false;
    // The time of a directory only says that something in it changed, which is told by itself.
    if (is.type != EntryType::kFile) co_return true;
    if (was.size != is.size) co_return false;
    if (was.modified_ns == is.modified_ns || is.size == 0) co_return true;
    // Beyond that it is told as changed, which it may not be.
    if (compared_ + is.size > kMaxComparedBytes) co_return false;
    compared_ += is.size;
    Files old_files(before_, kReader), new_files(after_, kReader);
    ATOLL_CO_TRY(auto old_bytes, co_await old_files.read(was.path, 0, was.size));
    ATOLL_CO_TRY(auto new_bytes, co_await new_files.read(is.path, 0, is.size));
    auto same = co_await have_same_bytes(std::move(old_bytes), std::move(new_bytes));
    co_return same;
  }

  std::shared_ptr<Sandbox> before_, after_;
  const DiffRequest& request_;
  Diff diff_;
  uint64_t compared_ = 0;
};

// No file is no line.
Task<Result<std::string>> read_text(std::shared_ptr<Sandbox> sandbox, std::string path) {
  auto bytes = co_await read_whole(sandbox, path, kMaxDiffTextBytes + 1);
  if (!bytes && bytes.error().reason() == "file_not_found") co_return std::string();
  if (!bytes) co_return bytes;
  bool is_text = bytes->size() <= kMaxDiffTextBytes && is_utf8(*bytes) &&
                 bytes->find('\0') == std::string::npos;
  if (is_text) co_return bytes;
  co_return Error(Code::kConflict, "the file is no text of at most 256 KiB")
      .with_reason("not_text");
}

Task<Result<Diff>> compare_text(std::shared_ptr<Sandbox> before, std::shared_ptr<Sandbox> after,
                                std::string path) {
  ATOLL_CO_TRY(std::string old_text, co_await read_text(before, path));
  ATOLL_CO_TRY(std::string new_text, co_await read_text(after, path));
  Diff diff;
  diff.text = unified_diff(old_text, new_text, path);
  co_return diff;
}

Task<Result<std::shared_ptr<Sandbox>>> open_snapshot(Sandboxes& sandboxes, store::TenantId tenant,
                                                     SnapshotId snapshot,
                                                     std::optional<store::Isolation> wall) {
  CreateSandbox request;
  request.snapshot = snapshot;
  request.isolation = wall;
  auto reader = co_await open_reader(sandboxes, tenant, std::move(request), kReaderTime);
  co_return reader;
}

Task<Result<Diff>> compare_snapshots(Sandboxes& sandboxes, store::TenantId tenant, SnapshotId to,
                                     const DiffRequest& request) {
  std::optional<store::Isolation> wall;  // of the readers, as of what is read
  if (request.live && request.live->row().isolation != "jail")
    wall = store::parse_isolation(request.live->row().isolation);
  ATOLL_CO_TRY(auto before, co_await open_snapshot(sandboxes, tenant, request.from, wall));
  auto after = co_await open_snapshot(sandboxes, tenant, to, wall);
  Result<Diff> diff = Diff();
  if (!after) {
    diff = std::move(after).error();
  } else if (request.text) {
    diff = co_await compare_text(before, *after, *request.text);
  } else {
    Comparison comparison(before, *after, request);
    diff = co_await comparison.run();
  }
  co_await close_reader(sandboxes, before);
  if (after) co_await close_reader(sandboxes, *after);
  co_return diff;
}

}  // namespace

Task<Result<Diff>> make_diff(Sandboxes& sandboxes, Snapshots& snapshots, store::TenantId tenant,
                             DiffRequest request) {
  Ledger& ledger = sandboxes.services().ledger;
  ATOLL_CO_TRY(auto from, co_await find_snapshot(ledger, tenant, request.from));
  if (request.to) {
    ATOLL_CO_TRY(auto to, co_await find_snapshot(ledger, tenant, *request.to));
    co_return co_await compare_snapshots(sandboxes, tenant, to.id, request);
  }
  CutSnapshot cut{.reason = "diff"};
  auto kept = co_await snapshots.cut(request.live, std::move(cut));
  if (!kept) co_return std::move(kept).error();
  SnapshotId now = kept->row.id;
  auto diff = co_await compare_snapshots(sandboxes, tenant, now, request);
  auto removed = co_await snapshots.remove(tenant, now, store::Orphans::kAdopt);
  if (!removed) log_warning("a diff left its snapshot", {removed.error()});
  co_return diff;
}

}  // namespace atl::sandbox
