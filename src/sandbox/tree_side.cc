#include "sandbox/tree_side.h"

#include "base/log.h"

namespace atl::sandbox {

namespace {

constexpr uint64_t kMaxEntries = 2'000'000;

}  // namespace

Task<Result<std::shared_ptr<Sandbox>>> open_reader(Sandboxes& sandboxes, store::TenantId tenant,
                                                   CreateSandbox request,
                                                   std::chrono::minutes time) {
  request.ttl_ms = static_cast<uint64_t>(std::chrono::milliseconds(time).count());
  request.idle_ttl_ms = 0;
  request.network = "{}";
  request.persistence = "ephemeral";
  request.transient = true;
  ATOLL_CO_TRY(Created created, co_await sandboxes.create(tenant, std::move(request)));
  co_return created.sandbox;
}

Task<void> close_reader(Sandboxes& sandboxes, std::shared_ptr<Sandbox> reader) {
  SandboxId id = reader->id();
  store::TenantId tenant = reader->row().tenant;
  auto removed = co_await sandboxes.remove(tenant, id);
  if (!removed) log_warning("left for the sweep", {{"sandbox", id.view()}, removed.error()});
}

Task<Result<TreeSide>> TreeSide::open(std::shared_ptr<Sandbox> sandbox, std::string path) {
  agent::FileRequest request;
  request.operation = agent::FileOperation::kTree;
  request.user = kReader;
  request.path = std::move(path);
  ATOLL_CO_TRY(std::unique_ptr<FileCall> call, co_await FileCall::open(sandbox, request));
  TreeSide side(std::move(call));
  ATOLL_CO_TRY_VOID(co_await side.advance());
  co_return side;
}

Task<Result<void>> TreeSide::advance() {
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

bool same_kind(const FileEntry& before, const FileEntry& after) {
  return before.type == after.type && before.mode == after.mode && before.uid == after.uid &&
         before.gid == after.gid && before.target == after.target;
}

}  // namespace atl::sandbox
