#include "sandbox/artifacts.h"

#include "base/log.h"
#include "store/media_type.h"

namespace atl::sandbox {

namespace {

// A worker of the agent reads as root: a program may have left files that only it can read.
constexpr std::string_view kReader = "root";
constexpr std::chrono::seconds kListTime{30};
constexpr std::chrono::seconds kKeepTime{2};

// Reads one file of the tree; into the collection, if there is one.
Task<Result<store::Artifact>> take_file(TreeReader& tree, FileEntry entry,
                                        store::Artifacts::Collection* collection) {
  store::Sha256 hash;
  std::string_view type;
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await tree.next_bytes());
    if (type.empty()) type = store::media_type(entry.path, bytes);
    if (bytes.empty()) break;
    hash.update(bytes);
    if (collection) ATOLL_CO_TRY_VOID(collection->append(bytes));
  }
  co_return store::Artifact{std::move(entry.path), entry.size, std::string(type), entry.modified_ns,
                            hash.finish()};
}

// Until the tree ends, a limit is reached or an error; what was whole before it stays in `list`.
Task<Result<void>> take_tree(TreeReader& tree, ArtifactList& list,
                             store::Artifacts::Collection* collection) {
  uint64_t bytes = 0;
  while (true) {
    ATOLL_CO_TRY(std::optional<FileEntry> entry, co_await tree.next_entry());
    if (!entry) co_return Result<void>();
    if (entry->type != agent::EntryType::kFile || !entry->hard_link.empty()) continue;
    bool fits = list.artifacts.size() < store::kMaxArtifacts &&
                entry->size <= store::kMaxArtifactBytes - bytes;
    if (fits && collection) fits = collection->begin(entry->size).ok();
    if (!fits) {
      // The rest of the stream is this file's bytes, which are not worth waiting for.
      list.truncated = true;
      co_return Result<void>();
    }
    bytes += entry->size;
    ATOLL_CO_TRY(store::Artifact artifact, co_await take_file(tree, std::move(*entry), collection));
    if (collection) collection->end(artifact);
    list.artifacts.push_back(std::move(artifact));
  }
}

Task<Result<ArtifactList>> take_all(std::shared_ptr<Sandbox> sandbox, std::chrono::seconds time,
                                    store::Artifacts::Collection* collection) {
  Files files(sandbox, std::string(kReader));
  ATOLL_CO_TRY(std::unique_ptr<TreeReader> tree,
               co_await files.pack(std::string(agent::kOutputsDirectory)));
  tree->set_deadline(std::chrono::steady_clock::now() + time);
  ArtifactList list;
  auto taken = co_await take_tree(*tree, list, collection);
  bool none = !taken && taken.error().reason() == "file_not_found" && list.artifacts.empty();
  // A collection is kept as far as it got.
  if (!taken && !none && !collection) co_return std::move(taken).error();
  if (!taken && !none) list.truncated = true;
  co_return list;
}

}  // namespace

Task<Result<ArtifactList>> list_artifacts(std::shared_ptr<Sandbox> sandbox) {
  return take_all(std::move(sandbox), kListTime, nullptr);
}

Task<void> keep_artifacts(std::shared_ptr<Sandbox> sandbox, Services& services) {
  if (sandbox->state() != State::kRunning) co_return;
  // To look costs a process.
  if (sandbox->execs().have_no_outputs() && sandbox->channels().file_operations() == 0) co_return;
  SandboxId id = sandbox->id();
  store::Artifacts::Collection collection = services.artifacts.collect(id);
  Result<void> kept;
  auto taken = co_await take_all(sandbox, kKeepTime, &collection);
  if (!taken) kept = std::move(taken).error();
  if (taken && taken->truncated) log_info("not all artifacts are kept", {{"sandbox", id.view()}});
  int64_t now_ms = to_milliseconds(services.clock.wall_now());
  if (kept) kept = collection.keep(sandbox->row().tenant, now_ms);
  if (!kept) log_warning("artifacts are lost", {{"sandbox", id.view()}, kept.error()});
}

}  // namespace atl::sandbox
