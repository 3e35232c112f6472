#include "sandbox/diff.h"

#include <algorithm>

#include "base/log.h"
#include "base/utf8.h"
#include "sandbox/text_diff.h"

namespace atl::sandbox {

namespace {

using agent::EntryType;
using agent::FileOperation;

constexpr std::chrono::minutes kReaderTime{5};  // what is left of one that was forgotten ends then
constexpr uint64_t kMaxEntries = 2'000'000;     // of one side
constexpr uint64_t kMaxComparedBytes = 256ull << 20;
constexpr char kReader[] = "root";

// The entries of one side, one after the other.
class Side {
 public:
  explicit Side(std::unique_ptr<FileCall> call) : call_(std::move(call)) {}

  const std::optional<FileEntry>& entry() const { return entry_; }

  Task<Result<void>> advance() {
    SteadyTime deadline = call_->patience();
    ATOLL_CO_TRY(auto record, co_await call_->next(deadline));
    if (!record) {
      entry_.reset();
      co_return Result<void>();
    }
    auto entry = record->type == agent::RecordType::kEntry
                     ? agent::decode_entry(record->payload)
                     : Result<FileEntry>(bad_answer("has another record than asked for"));
    if (!entry) co_return std::move(entry).error();
    bool in_order = check_path(entry->path).ok() && (!entry_ || entry_->path < entry->path);
    if (!in_order || ++count_ > kMaxEntries) co_return bad_answer("is not in order, or too long");
    entry_ = std::move(*entry);
    co_return Result<void>();
  }

 private:
  std::unique_ptr<FileCall> call_;
  std::optional<FileEntry> entry_;
  uint64_t count_ = 0;
};

std::optional<uint64_t> size_of(const FileEntry& entry) {
  return entry.type == EntryType::kFile ? std::optional(entry.size) : std::nullopt;
}

bool same_kind(const FileEntry& before, const FileEntry& after) {
  return before.type == after.type && before.mode == after.mode && before.uid == after.uid &&
         before.gid == after.gid && before.target == after.target;
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
    ATOLL_CO_TRY(Side before, co_await open(before_));
    ATOLL_CO_TRY(Side after, co_await open(after_));
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
  Task<Result<Side>> open(std::shared_ptr<Sandbox> sandbox) {
    agent::FileRequest request;
    request.operation = FileOperation::kTree;
    request.user = kReader;
    request.path = request_.path;
    ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox, request));
    Side side(std::move(call));
    ATOLL_CO_TRY_VOID(co_await side.advance());
    co_return side;
  }

  // What is first on either side.
  Task<Result<void>> compare(Side& before, Side& after) {
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

Task<Result<std::shared_ptr<Sandbox>>> open_reader(Sandboxes& sandboxes, store::TenantId tenant,
                                                   SnapshotId snapshot) {
  CreateSandbox request;
  request.snapshot = snapshot;
  request.ttl_ms = static_cast<uint64_t>(std::chrono::milliseconds(kReaderTime).count());
  request.network = "{}";
  request.persistence = "ephemeral";
  ATOLL_CO_TRY(Created created, co_await sandboxes.create(tenant, std::move(request)));
  co_return created.sandbox;
}

Task<void> close_reader(Sandboxes& sandboxes, store::TenantId tenant, SandboxId id) {
  auto removed = co_await sandboxes.remove(tenant, id);
  if (!removed) log_warning("left for the sweep", {{"sandbox", id.view()}, removed.error()});
}

Task<Result<Diff>> compare_snapshots(Sandboxes& sandboxes, store::TenantId tenant, SnapshotId to,
                                     const DiffRequest& request) {
  ATOLL_CO_TRY(auto before, co_await open_reader(sandboxes, tenant, request.from));
  auto after = co_await open_reader(sandboxes, tenant, to);
  Result<Diff> diff = Diff();
  if (!after) {
    diff = std::move(after).error();
  } else if (request.text) {
    diff = co_await compare_text(before, *after, *request.text);
  } else {
    Comparison comparison(before, *after, request);
    diff = co_await comparison.run();
  }
  SandboxId first = before->id();
  co_await close_reader(sandboxes, tenant, first);
  if (after) {
    SandboxId second = (*after)->id();
    co_await close_reader(sandboxes, tenant, second);
  }
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
