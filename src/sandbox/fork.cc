#include "sandbox/fork.h"

#include <algorithm>

#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "sandbox/context_language.h"
#include "sandbox/context_start.h"

namespace atl::sandbox {

namespace {

constexpr uint32_t kMaxAtOnce = 8;  // the warden has no more helpers

}  // namespace

CreateSandbox twin_request(const store::SandboxRow& row, SnapshotId snapshot) {
  CreateSandbox request;
  request.snapshot = snapshot;
  // For the jail nothing is looked up.
  if (row.isolation != "jail") request.isolation = store::parse_isolation(row.isolation);
  request.cpu_millis = row.cpu_millis;
  request.memory_bytes = row.memory_bytes;
  request.pids = row.pids;
  request.disk_bytes = row.disk_bytes;
  request.output_bytes = row.output_bytes;
  request.open_files = row.open_files;
  request.disk_bytes_per_second = row.disk_bytes_per_second;
  request.cpu_time_ms = row.cpu_time_ms;
  bool ends_all = row.on_oom == "sandbox";
  request.on_oom = ends_all ? isolate::OnOom::kEndSandbox : isolate::OnOom::kEndExec;
  request.required_extras = row.required_extras;
  request.ttl_ms = row.ttl_ms;
  request.idle_ttl_ms = row.idle_ttl_ms;
  request.on_ttl = row.on_ttl;
  request.auto_resume = row.auto_resume;
  request.files_only_after_ms = row.files_only_after_ms;
  request.files_only_under_pressure = row.files_only_under_pressure;
  request.checkpoint = row.checkpoint;
  request.persistence = row.persistence;
  request.metadata = row.metadata;
  request.environment = row.environment;
  request.user = row.user;
  request.directory = row.directory;
  request.network = row.network;
  return request;
}

ContextRequest context_request_of(const Context& context) {
  ContextRequest request{.language = context.row().language,
                         .directory = context.row().directory,
                         .environment = split_variables(context.row().environment)};
  request.description = context.row().description;
  return request;
}

namespace {

std::vector<ContextRequest> contexts_of(Sandbox& sandbox) {
  std::vector<ContextRequest> requests;
  for (const auto& context : sandbox.contexts().all())
    requests.push_back(context_request_of(*context));
  return requests;
}

// The creates of one fork, several at a time.
struct Batch {
  explicit Batch(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}
  store::TenantId tenant{store::kLocalTenant};
  CreateSandbox request;
  std::vector<ContextRequest> contexts;
  uint32_t left = 0;     // to be begun
  uint32_t workers = 0;  // that have not ended
  std::vector<std::shared_ptr<Sandbox>> made;
  std::optional<Error> failure;
  Event changed;
};

Task<Result<void>> make_one(Sandboxes& sandboxes, std::shared_ptr<Batch> batch) {
  CreateSandbox request = batch->request;
  auto created = co_await sandboxes.create(batch->tenant, std::move(request));
  if (!created) co_return std::move(created).error();
  std::shared_ptr<Sandbox> sandbox = created->sandbox;
  batch->made.push_back(sandbox);
  crash_point("fork.made");
  for (ContextRequest context : batch->contexts) {
    auto started = co_await start_context(sandbox, std::move(context));
    if (!started) co_return std::move(started).error();
  }
  co_return Result<void>();
}

Task<void> work(Sandboxes& sandboxes, std::shared_ptr<Batch> batch) {
  while (batch->left > 0 && !batch->failure) {
    --batch->left;
    auto made = co_await make_one(sandboxes, batch);
    if (!made && !batch->failure) batch->failure = std::move(made).error();
  }
  --batch->workers;
  batch->changed.notify_all();
}

Task<void> make_all(Sandboxes& sandboxes, std::shared_ptr<Batch> batch) {
  batch->workers = std::min(batch->left, kMaxAtOnce);
  auto executor = sandboxes.services().executor;
  for (uint32_t begun = batch->workers; begun > 0; --begun) {
    auto worker = work(sandboxes, batch);
    // detached: owns a share of the batch, which is waited for below
    spawn(executor, std::move(worker));
  }
  while (batch->workers > 0) co_await batch->changed.wait();
}

Task<void> undo(Sandboxes& sandboxes, std::shared_ptr<Batch> batch) {
  for (const auto& sandbox : batch->made) {
    SandboxId id = sandbox->id();
    auto removed = co_await sandboxes.remove(batch->tenant, id);
    if (!removed) log_warning("left for the sweep", {{"sandbox", id.view()}, removed.error()});
  }
}

}  // namespace

Task<Result<Forked>> fork_sandbox(Sandboxes& sandboxes, Snapshots& snapshots,
                                  std::shared_ptr<Sandbox> sandbox, ForkRequest wanted) {
  Forked forked;
  ATOLL_CO_TRY(forked.not_carried, co_await find_not_carried(sandboxes.services(), sandbox));
  for (const store::VolumeUse& use : sandbox->row().volumes)
    forked.not_carried.push_back({NotCarried::What::kVolume, use.name});
  CutSnapshot cut{.reason = "fork"};
  auto kept = co_await snapshots.cut(sandbox, std::move(cut));
  if (!kept) co_return std::move(kept).error();
  crash_point("fork.cut");
  SnapshotId snapshot = kept->row.id;
  forked.frozen = kept->frozen;
  auto batch = std::make_shared<Batch>(sandboxes.services().executor);
  batch->tenant = sandbox->row().tenant;
  batch->request = twin_request(sandbox->row(), snapshot);
  batch->contexts = contexts_of(*sandbox);
  batch->left = wanted.count;
  batch->request.ttl_ms = wanted.ttl_ms.value_or(sandbox->row().ttl_ms);
  co_await make_all(sandboxes, batch);
  if (batch->failure) co_await undo(sandboxes, batch);
  // What they share is theirs now.
  auto removed = co_await snapshots.remove(batch->tenant, snapshot, store::Orphans::kAdopt);
  crash_point("fork.done");
  if (!removed) log_warning("a fork left its snapshot", {removed.error()});
  if (batch->failure) co_return std::move(*batch->failure);
  forked.sandboxes = std::move(batch->made);
  co_return forked;
}

}  // namespace atl::sandbox
