#include "sandbox/seals.h"

#include "async/pool_job.h"
#include "async/spawn.h"
#include "base/crash_point.h"
#include "base/file.h"
#include "base/log.h"
#include "sandbox/layer_records.h"
#include "sandbox/tree_side.h"
#include "store/sha256.h"

namespace atl::sandbox {

namespace {

constexpr size_t kThreads = 2;
constexpr std::chrono::minutes kImportTime{60};

Result<std::string> read_manifest_blob(const store::Blobs& blobs, const Digest& name) {
  ATOLL_TRY(Fd file, blobs.open(name));
  ATOLL_TRY(std::string bytes, read_all(file.get(), store::kMaxManifestBytes));
  // What it names is kept by it alone.
  if (store::sha256(bytes) != name)
    return Error(Code::kCorrupt, "the manifest " + name.string() + " is damaged");
  return bytes;
}

enum class Gone : unsigned char { kPassOver, kRefuse };

// All blobs that snapshots with these manifests need. `gone`: a manifest that is not there. What it
// named is of no use, unless it is its name that is wrong.
Result<store::NeededBlobs> read_needed(const store::Blobs& blobs,
                                       const std::vector<Digest>& manifests, Gone gone) {
  store::NeededBlobs needed;
  for (const Digest& name : manifests) {
    auto bytes = read_manifest_blob(blobs, name);
    bool is_gone = !bytes && bytes.error().code() == Code::kNotFound;
    if (is_gone && gone == Gone::kPassOver) continue;
    if (is_gone)
      return Error(Code::kCorrupt, "the manifest " + name.string() + " of a snapshot is not there");
    if (!bytes) return std::move(bytes).error();
    ATOLL_TRY(store::SnapshotManifest manifest, store::read_manifest(*bytes));
    needed.add(name, bytes->size());
    for (const store::SnapshotPart& part : manifest.parts) needed.add(part.digest, part.bytes);
  }
  return needed;
}

store::SnapshotManifest manifest_of(const store::SnapshotRow& row,
                                    std::vector<store::SnapshotPart> parts) {
  store::SnapshotManifest manifest{.image = row.image};
  manifest.template_name = row.template_name;
  manifest.label = row.label;
  manifest.metadata = row.metadata;
  manifest.created_at_ms = row.created_at_ms;
  manifest.cpu_millis = row.cpu_millis;
  manifest.memory_bytes = row.memory_bytes;
  manifest.pids = row.pids;
  manifest.disk_bytes = row.disk_bytes;
  manifest.parts = std::move(parts);
  return manifest;
}

}  // namespace

// Shared with the thread that works on it.
struct Seals::Packing {
  Packing(store::BlobKeeper& keeper, std::unique_ptr<store::BlobShares::Claim> claim)
      : blobs(keeper.blobs()), hold(keeper, std::move(claim)), writer(hold) {}
  store::Blobs& blobs;
  store::BlobKeeper::Hold hold;
  store::PartWriter writer;
  uint64_t manifest_bytes = 0;
};

class Seals::Upload {
 public:
  Upload(std::shared_ptr<Packing> into, store::ArrivalCount coming, store::TenantId of,
         store::PublicKeys keys)
      : tenant(of),
        packing(std::move(into)),
        count(std::move(coming)),
        reader(std::move(keys),
               {[this](const store::SnapshotManifest& manifest) { return begin(manifest); },
                [this](const store::SnapshotPart& part, std::string_view bytes) {
                  return put(part, bytes);
                }}) {}

  // Nothing of it is stored unless there is room for all.
  Result<void> begin(const store::SnapshotManifest& manifest) {
    begun = true;
    store::BlobShares::Claim& claim = packing->hold.claim();
    const std::string& bytes = reader.manifest_bytes();
    ATOLL_TRY_VOID(claim.add(store::sha256(bytes), bytes.size()));
    for (const store::SnapshotPart& part : manifest.parts)
      ATOLL_TRY_VOID(claim.add(part.digest, part.bytes));
    return {};
  }

  Result<void> put(const store::SnapshotPart& part, std::string_view bytes) {
    ATOLL_TRY_VOID(packing->hold.put(part.digest, bytes));
    return {};
  }

  store::TenantId tenant;
  std::shared_ptr<Packing> packing;
  store::ArrivalCount count;
  store::SnapshotPackReader reader;
  bool begun = false;    // the manifest is here and good
  bool allowed = false;  // and the tenant has its image
};

Seals::Seals(Sandboxes& sandboxes, Snapshots& snapshots, Places places)
    : sandboxes_(sandboxes),
      snapshots_(snapshots),
      services_(sandboxes.services()),
      places_(std::move(places)),
      arrivals_(places_.imports),
      threads_(kThreads) {
  snapshots_.set_on_unsealed([this] { collect_soon(); });
}

void Seals::collect_soon() {
  auto collecting = [](Seals& self) -> Task<void> { (void)co_await self.collect(); };
  // detached: owned by this object, whoever asked for it
  spawn(services_.executor, collecting(*this));
}

Task<Result<std::shared_ptr<Seals::Packing>>> Seals::begin_packing(store::TenantId tenant) {
  uint64_t limit = store::kSealedShareBytes;
  if (services_.sealed_share) limit = services_.sealed_share(tenant);
  auto claim = std::make_unique<store::BlobShares::Claim>(places_.keeper.shares(), tenant, limit);
  auto read = [tenant](store::Catalog& catalog) { return catalog.snapshots().manifests(tenant); };
  ATOLL_CO_TRY(std::vector<Digest> manifests, co_await services_.ledger.run(read));
  auto work = [manifests = std::move(manifests), &blobs = places_.keeper.blobs()] {
    return read_needed(blobs, manifests, Gone::kPassOver);
  };
  ATOLL_CO_TRY(store::NeededBlobs needed, co_await run_on(threads_, std::move(work)));
  claim->set_needed(std::move(needed));
  co_return std::make_shared<Packing>(places_.keeper, std::move(claim));
}

Task<Result<Sealed>> Seals::seal(store::TenantId tenant, SnapshotId id) {
  ATOLL_CO_TRY(store::SnapshotRow row, co_await find_snapshot(services_.ledger, tenant, id));
  if (row.manifest) co_return Sealed{std::move(row)};
  if (!row.isolation.empty() && row.isolation != "jail")
    co_return Error(Code::kUnsupported,
                    "a snapshot of a sandbox behind " + row.isolation + " cannot be sealed yet")
        .with_reason("not_behind_this_wall");
  Snapshots::InUse in_use(snapshots_, id);
  ATOLL_CO_TRY(std::shared_ptr<Packing> packing, co_await begin_packing(tenant));
  auto packed = co_await pack(row, packing);
  if (!packed) {
    packing.reset();
    collect_soon();
    co_return std::move(packed).error();
  }
  uint64_t new_bytes = packing->writer.new_bytes() + packing->manifest_bytes;
  co_return Sealed{std::move(*packed), new_bytes};
}

Task<Result<Sealed>> Seals::cut(std::shared_ptr<Sandbox> sandbox, CutSnapshot request) {
  auto kept = co_await snapshots_.cut(std::move(sandbox), std::move(request));
  if (!kept) co_return std::move(kept).error();
  SnapshotId id = kept->row.id;
  store::TenantId tenant = kept->row.tenant;
  auto sealed = co_await seal(tenant, id);
  if (sealed) {
    sealed->frozen = kept->frozen;
    co_return sealed;
  }
  // Nobody was told of it. What was kept of the sandbox meanwhile stays, without it.
  auto removed = co_await snapshots_.remove(tenant, id, store::Orphans::kAdopt);
  if (!removed)
    log_warning("a snapshot stays unsealed", {{"snapshot", id.view()}, removed.error()});
  co_return sealed;
}

Task<Result<store::SnapshotRow>> Seals::pack(store::SnapshotRow row,
                                             std::shared_ptr<Packing> packing) {
  TakeRecords take = [this, packing](std::string records) -> Task<Result<void>> {
    auto work = [packing, records = std::move(records)] { return packing->writer.add(records); };
    auto added = co_await run_on(threads_, std::move(work));
    crash_point("seal.part");
    co_return added;
  };
  ATOLL_CO_TRY_VOID(co_await read_layer(sandboxes_, row, take));
  auto work = [packing] { return packing->writer.finish(); };
  ATOLL_CO_TRY_VOID(co_await run_on(threads_, work));
  store::SnapshotManifest manifest = manifest_of(row, packing->writer.parts());
  std::string body = store::encode_body(manifest);
  Digest digest = store::sha256(body);
  ATOLL_CO_TRY(std::string seal, co_await services_.driver.sign_manifest(digest));
  std::string whole = store::signed_manifest(body, seal);
  crash_point("seal.signed");
  row.manifest = store::sha256(whole);
  row.sealed_bytes = manifest.stored_bytes() + whole.size();
  ATOLL_CO_TRY_VOID(co_await store_manifest(packing, std::move(whole)));
  crash_point("seal.stored");
  auto update = [row](store::Catalog& catalog) { return catalog.snapshots().set_sealed(row); };
  ATOLL_CO_TRY_VOID(co_await services_.ledger.run(update));
  crash_point("seal.row");
  packing->hold.claim().settle();
  co_return row;
}

// All that a row may name from now on is on disk afterwards.
Task<Result<void>> Seals::store_manifest(std::shared_ptr<Packing> packing, std::string bytes) {
  auto work = [packing, bytes = std::move(bytes)]() -> Result<void> {
    Digest name = store::sha256(bytes);
    ATOLL_TRY(store::Blobs::Put done, packing->hold.put(name, bytes));
    if (done == store::Blobs::Put::kNew) packing->manifest_bytes = bytes.size();
    return packing->blobs.sync();
  };
  auto stored = co_await run_on(threads_, std::move(work));
  co_return stored;
}

Task<Result<std::shared_ptr<PackDownload>>> Seals::open(store::TenantId tenant, SnapshotId id) {
  auto download = std::make_shared<PackDownload>(places_.keeper);
  ATOLL_CO_TRY(store::SnapshotRow row, co_await find_snapshot(services_.ledger, tenant, id));
  if (!row.manifest)
    co_return Error(Code::kConflict, "the snapshot is not sealed")
        .with_reason("snapshot_not_sealed");
  // Nothing of it goes away before all of it is held.
  Snapshots::InUse in_use(snapshots_, id);
  auto work = [download, name = *row.manifest]() -> Result<void> {
    ATOLL_TRY(download->manifest, read_manifest_blob(download->blobs, name));
    ATOLL_TRY(store::SnapshotManifest manifest, store::read_manifest(download->manifest));
    download->parts = store::parts_of_file(manifest);
    download->bytes = download->manifest.size() + manifest.stored_bytes();
    for (const store::SnapshotPart& part : download->parts) download->hold.add(part.digest);
    return {};
  };
  auto opened = co_await run_on(threads_, std::move(work));
  if (!opened) co_return std::move(opened).error();
  co_return download;
}

Task<Result<std::shared_ptr<Seals::Upload>>> Seals::begin(store::TenantId tenant) {
  ATOLL_CO_TRY(store::PublicKeys keys, store::read_trusted_keys(places_.state_directory));
  ATOLL_CO_TRY(std::shared_ptr<Packing> packing, co_await begin_packing(tenant));
  co_return std::make_shared<Upload>(std::move(packing), arrivals_.begin(tenant), tenant,
                                     std::move(keys));
}

Task<Result<void>> Seals::add(std::shared_ptr<Upload> upload, std::string bytes) {
  ATOLL_CO_TRY_VOID(upload->count.add(bytes.size()));
  auto work = [upload, bytes = std::move(bytes)] { return upload->reader.add(bytes); };
  ATOLL_CO_TRY_VOID(co_await run_on(threads_, std::move(work)));
  crash_point("import.part");
  if (!upload->begun || upload->allowed) co_return Result<void>();
  upload->allowed = true;
  co_return check_image(upload->tenant, upload->reader.manifest());
}

Result<void> Seals::check_image(store::TenantId tenant, const store::SnapshotManifest& manifest) {
  // The name may have been that of a version already.
  std::string name = manifest.template_name.substr(0, manifest.template_name.find('@'));
  std::string version = name + "@sha256:" + manifest.image.string();
  ATOLL_TRY(std::optional<KnownTemplate> found, sandboxes_.templates().find(tenant, version));
  if (found && found->image == manifest.image) return {};
  return Error(Code::kCorrupt, "the snapshot lies on " + version + ", which is not here")
      .with_reason("snapshot_image_missing");
}

Result<Digest> Seals::check(Upload& upload) const {
  ATOLL_TRY_VOID(upload.reader.finish());
  upload.count.forget();
  // All that follows it is what it names.
  return store::sha256(upload.reader.manifest_bytes());
}

Task<Result<Kept>> Seals::finish(std::shared_ptr<Upload> upload) {
  std::string manifest = upload->reader.manifest_bytes();
  ATOLL_CO_TRY_VOID(co_await store_manifest(upload->packing, std::move(manifest)));
  crash_point("import.stored");
  co_return co_await restore(upload);
}

Task<Result<Kept>> Seals::restore(std::shared_ptr<Upload> upload) {
  const store::SnapshotManifest& manifest = upload->reader.manifest();
  CreateSandbox request;
  request.template_name = manifest.template_name;
  request.image = manifest.image;
  request.cpu_millis = manifest.cpu_millis;
  request.memory_bytes = manifest.memory_bytes;
  request.pids = manifest.pids;
  request.disk_bytes = manifest.disk_bytes;
  store::TenantId tenant = upload->tenant;
  ATOLL_CO_TRY(auto sandbox,
               co_await open_reader(sandboxes_, tenant, std::move(request), kImportTime));
  crash_point("import.made");
  Result<Kept> kept = Error(Code::kCancelled, "");
  auto unpacked = co_await unpack(sandbox, upload);
  crash_point("import.unpacked");
  if (unpacked) {
    CutSnapshot cut{.label = manifest.label, .metadata = manifest.metadata};
    cut.manifest = store::sha256(upload->reader.manifest_bytes());
    cut.sealed_bytes = manifest.stored_bytes() + upload->reader.manifest_bytes().size();
    kept = co_await snapshots_.cut(sandbox, std::move(cut));
    if (kept) upload->packing->hold.claim().settle();
  } else {
    kept = std::move(unpacked).error();
  }
  crash_point("import.kept");
  co_await close_reader(sandboxes_, sandbox);
  co_return kept;
}

Task<Result<void>> Seals::unpack(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Upload> upload) {
  auto next = std::make_shared<size_t>(0);
  GiveRecords give = [this, upload, next]() -> Task<Result<std::string>> {
    const auto& parts = upload->reader.manifest().parts;
    if (*next == parts.size()) co_return std::string();
    auto work = [upload, part = parts[(*next)++]] {
      return store::read_part(upload->packing->blobs, part);
    };
    auto bytes = co_await run_on(threads_, std::move(work));
    co_return bytes;
  };
  auto written = co_await write_layer(sandbox, give);
  co_return written;
}

Task<Result<void>> Seals::collect() {
  again_ = true;
  Result<void> done;
  if (collecting_) co_return done;
  collecting_ = true;
  while (again_) {
    again_ = false;
    auto removed = co_await collect_once();
    if (!removed) log_error("blobs were not collected", {removed.error()});
    if (removed && *removed > 0) log_info("collected blobs", {{"removed", *removed}});
    if (!removed) done = std::move(removed).error();
  }
  collecting_ = false;
  co_return done;
}

Task<Result<size_t>> Seals::collect_once() {
  using Collection = store::BlobKeeper::Collection;
  auto collection = std::make_shared<Collection>(places_.keeper);
  auto read = [](store::Catalog& catalog) { return catalog.snapshots().all_manifests(); };
  ATOLL_CO_TRY(std::vector<Digest> manifests, co_await services_.ledger.run(read));
  store::Unlisted fate = services_.ledger.unlisted();
  auto work = [collection, manifests = std::move(manifests), fate,
               &blobs = places_.keeper.blobs()]() -> Result<size_t> {
    ATOLL_TRY(store::NeededBlobs needed, read_needed(blobs, manifests, Gone::kRefuse));
    return collection->run(needed.names, fate);
  };
  auto removed = co_await run_on(threads_, std::move(work));
  crash_point("collect.done");
  co_return removed;
}

}  // namespace atl::sandbox
