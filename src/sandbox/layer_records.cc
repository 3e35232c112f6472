#include "sandbox/layer_records.h"

#include <algorithm>

#include "sandbox/tree_side.h"

namespace atl::sandbox {

namespace {

using agent::EntryType;
using agent::FileOperation;

constexpr std::chrono::minutes kReadingTime{60};
constexpr uint64_t kReaderMemoryBytes = 512ull << 20;
constexpr uint32_t kReaderCpuMillis = 2000;
constexpr size_t kMaxNamesBytes = 64ull << 20;
constexpr size_t kPieceBytes = 1 << 20;
constexpr size_t kSentBytes = 64 * 1024;

// What differs, as records that name it: what is gone, and what is to be read.
struct Differences {
  std::string gone, changed;
};

FileEntry named(std::string_view path, EntryType type) {
  FileEntry entry;
  entry.path = path.substr(1);
  entry.type = type;
  return entry;
}

// Whatever was written to since has another time of change than the image gave it.
bool is_as_in_image(const FileEntry& was, const FileEntry& is) {
  if (!same_kind(was, is)) return false;
  if (is.type != EntryType::kFile) return true;
  return was.size == is.size && was.modified_ns == is.modified_ns;
}

Task<Result<Differences>> compare(std::shared_ptr<Sandbox> image,
                                  std::shared_ptr<Sandbox> snapshot) {
  std::string root = "/";
  ATOLL_CO_TRY(TreeSide before, co_await TreeSide::open(image, root));
  ATOLL_CO_TRY(TreeSide after, co_await TreeSide::open(snapshot, root));
  Differences found;
  std::string removed;  // the last one: what was beneath it went with it
  while (before.entry() || after.entry()) {
    bool gone = before.entry() && (!after.entry() || before.entry()->path < after.entry()->path);
    bool made = !gone && (!before.entry() || after.entry()->path < before.entry()->path);
    if (gone) {
      const std::string& path = before.entry()->path;
      bool beneath = !removed.empty() && path.starts_with(removed + "/");
      if (!beneath) found.gone += encode_record(named(path, EntryType::kOther));
      if (!beneath) removed = path;
    } else if (after.entry()->type != EntryType::kOther &&
               (made || !is_as_in_image(*before.entry(), *after.entry()))) {
      found.changed += encode_record(named(after.entry()->path, EntryType::kFile));
    }
    if (found.gone.size() + found.changed.size() > kMaxNamesBytes)
      co_return Error(Code::kInvalid, "the names of changed files have more than 64 MiB")
          .with_reason("snapshot_too_large");
    if (!made) ATOLL_CO_TRY_VOID(co_await before.advance());
    if (!gone) ATOLL_CO_TRY_VOID(co_await after.advance());
  }
  co_return found;
}

Task<Result<std::unique_ptr<FileCall>>> open_call(std::shared_ptr<Sandbox> sandbox,
                                                  FileOperation operation) {
  agent::FileRequest request;
  request.operation = operation;
  request.user = kReader;
  request.path = "/";
  auto call = co_await FileCall::open(sandbox, request);
  co_return call;
}

Task<Result<void>> send_all(FileCall& call, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size(); done += kSentBytes) {
    std::string piece = bytes.substr(done, kSentBytes);
    ATOLL_CO_TRY_VOID(co_await call.send(std::move(piece)));
  }
  co_return Result<void>();
}

Task<Result<void>> read_files(std::shared_ptr<Sandbox> sandbox, Differences found,
                              TakeRecords take) {
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await open_call(sandbox, FileOperation::kPick));
  found.changed += agent::encode_done();
  ATOLL_CO_TRY_VOID(co_await send_all(*call, found.changed));
  std::string records = std::move(found.gone);
  while (true) {
    SteadyTime deadline = call->patience();
    ATOLL_CO_TRY(auto record, co_await call->next(deadline));
    if (!record) break;
    records += agent::encode_record(record->type, record->payload);
    if (records.size() < kPieceBytes) continue;
    std::string full = std::exchange(records, {});
    ATOLL_CO_TRY_VOID(co_await take(std::move(full)));
  }
  records += agent::encode_done();
  co_return co_await take(std::move(records));
}

CreateSandbox reader_request() {
  CreateSandbox request;
  request.memory_bytes = kReaderMemoryBytes;
  request.cpu_millis = kReaderCpuMillis;
  return request;
}

}  // namespace

Task<Result<void>> read_layer(Sandboxes& sandboxes, const store::SnapshotRow& snapshot,
                              TakeRecords take) {
  CreateSandbox of_image = reader_request();
  of_image.template_name = snapshot.template_name;
  of_image.image = snapshot.image;
  CreateSandbox of_snapshot = reader_request();
  of_snapshot.snapshot = snapshot.id;
  store::TenantId tenant = snapshot.tenant;
  ATOLL_CO_TRY(auto after,
               co_await open_reader(sandboxes, tenant, std::move(of_snapshot), kReadingTime));
  auto before = co_await open_reader(sandboxes, tenant, std::move(of_image), kReadingTime);
  Result<Differences> found = Differences();
  if (before) {
    found = co_await compare(*before, after);
    co_await close_reader(sandboxes, *before);
  } else {
    found = std::move(before).error();
  }
  Result<void> read;
  if (found)
    read = co_await read_files(after, std::move(*found), std::move(take));
  else
    read = std::move(found).error();
  co_await close_reader(sandboxes, after);
  co_return read;
}

Task<Result<void>> write_layer(std::shared_ptr<Sandbox> sandbox, GiveRecords give) {
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call,
               co_await open_call(sandbox, FileOperation::kRestore));
  while (true) {
    ATOLL_CO_TRY(std::string records, co_await give());
    if (records.empty()) break;
    ATOLL_CO_TRY_VOID(co_await send_all(*call, records));
  }
  ATOLL_CO_TRY_VOID(co_await call->expect_done());
  co_return Result<void>();
}

}  // namespace atl::sandbox
