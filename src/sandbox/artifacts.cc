#include "sandbox/artifacts.h"

#include <set>

#include "base/log.h"
#include "store/media_type.h"

namespace atl::sandbox {

namespace {

// A worker of the agent reads as root: a program may have left files that only it can read.
constexpr std::string_view kReader = "root";
constexpr std::chrono::seconds kListTime{30};
constexpr std::chrono::seconds kKeepTime{2};

// What is taken, from one directory after the other.
struct Taking {
  store::Artifacts::Collection* collection = nullptr;  // null: only looked at
  ArtifactList list = {};
  std::set<std::string> names = {};
  uint64_t bytes = 0;

  // False: a limit is reached.
  bool begin(uint64_t size) {
    bool fits =
        list.artifacts.size() < store::kMaxArtifacts && size <= store::kMaxArtifactBytes - bytes;
    if (fits && collection) fits = collection->begin(size).ok();
    if (fits) bytes += size;
    list.truncated = list.truncated || !fits;
    return fits;
  }
};

Task<Result<void>> take_file(TreeReader& tree, FileEntry entry, std::string name, Taking& taking) {
  store::Sha256 hash;
  std::string_view type;
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await tree.next_bytes());
    if (type.empty()) type = store::media_type(name, bytes);
    if (bytes.empty()) break;
    hash.update(bytes);
    if (taking.collection) ATOLL_CO_TRY_VOID(taking.collection->append(bytes));
  }
  store::Artifact artifact{std::move(name), entry.size, std::string(type), entry.modified_ns,
                           hash.finish()};
  if (taking.collection) taking.collection->end(artifact);
  taking.list.artifacts.push_back(std::move(artifact));
  co_return Result<void>();
}

Task<Result<void>> pass_over(TreeReader& tree) {
  while (true) {
    ATOLL_CO_TRY(std::string_view bytes, co_await tree.next_bytes());
    if (bytes.empty()) co_return Result<void>();
  }
}

// Until the tree ends, a limit is reached or an error; what was whole before it stays.
Task<Result<void>> take_tree(TreeReader& tree, const OutputPatterns::Pattern& pattern,
                             Taking& taking) {
  std::string prefix = pattern.directory == "/" ? "/" : pattern.directory + "/";
  while (true) {
    ATOLL_CO_TRY(std::optional<FileEntry> entry, co_await tree.next_entry());
    if (!entry) co_return Result<void>();
    if (entry->type != agent::EntryType::kFile || !entry->hard_link.empty()) continue;
    // The agent is to send only what fits; it may be older than that, or lie.
    std::string path = prefix + entry->path;
    std::string name = OutputPatterns::name_of(path);
    if (!pattern.glob.matches(path) || !taking.names.insert(name).second) {
      ATOLL_CO_TRY_VOID(co_await pass_over(tree));
      continue;
    }
    // The rest of the stream is this file's bytes, which are not worth waiting for.
    if (!taking.begin(entry->size)) co_return Result<void>();
    ATOLL_CO_TRY_VOID(co_await take_file(tree, std::move(*entry), std::move(name), taking));
  }
}

Task<Result<void>> take_all(std::shared_ptr<Sandbox> sandbox, const OutputPatterns& patterns,
                            std::chrono::seconds time, Taking& taking) {
  Files files(sandbox, std::string(kReader));
  SteadyTime deadline = std::chrono::steady_clock::now() + time;
  for (const OutputPatterns::Pattern& pattern : patterns.patterns()) {
    ATOLL_CO_TRY(std::unique_ptr<TreeReader> tree,
                 co_await files.pack(pattern.directory, pattern.rest));
    tree->set_deadline(deadline);
    size_t before = taking.list.artifacts.size();
    auto taken = co_await take_tree(*tree, pattern, taking);
    bool none = !taken && taken.error().reason() == "file_not_found" &&
                taking.list.artifacts.size() == before;
    if (!taken && !none) co_return taken;
    if (taking.list.truncated) break;
  }
  co_return Result<void>();
}

}  // namespace

Task<Result<ArtifactList>> list_artifacts(std::shared_ptr<Sandbox> sandbox,
                                          OutputPatterns patterns) {
  Taking taking;
  ATOLL_CO_TRY_VOID(co_await take_all(sandbox, patterns, kListTime, taking));
  co_return std::move(taking.list);
}

// To look costs a process. The agent's word is about the usual directory alone.
bool has_no_artifacts(Sandbox& sandbox, const OutputPatterns& patterns) {
  return patterns.are_usual() && sandbox.execs().have_no_outputs() &&
         sandbox.channels().file_operations() == 0;
}

Task<void> keep_artifacts(std::shared_ptr<Sandbox> sandbox, OutputPatterns patterns,
                          Services& services) {
  if (sandbox->state() != State::kRunning || has_no_artifacts(*sandbox, patterns)) co_return;
  SandboxId id = sandbox->id();
  store::Artifacts::Collection collection = services.artifacts.collect(id);
  Taking taking{.collection = &collection};
  auto taken = co_await take_all(sandbox, patterns, kKeepTime, taking);
  // A collection is kept as far as it got.
  if (!taken) log_warning("artifacts are lost", {{"sandbox", id.view()}, taken.error()});
  if (taking.list.truncated) log_info("not all artifacts are kept", {{"sandbox", id.view()}});
  int64_t now_ms = services.expiry_time.now_ms();
  Result<void> kept = collection.keep(sandbox->row().tenant, now_ms);
  if (!kept) log_warning("artifacts are lost", {{"sandbox", id.view()}, kept.error()});
}

}  // namespace atl::sandbox
