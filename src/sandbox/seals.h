// Seals: snapshots in their second stage, as blobs that a signed manifest names, and as one file of
// these that leaves this host or comes from another.
//
// Blobs are put first and synced, then a row names their manifest; so whatever dies, there is no
// row without its blobs, and blobs without a row are garbage that the next collection removes. What
// comes from elsewhere is stored and checked whole before a sandbox is made for it, and is visible
// by the one row that its snapshot is inserted with.
//
// What all sealed snapshots of a tenant need counts against its share, each blob once. What is too
// much is refused with reason sealed_share_full: an import before any of its parts is stored, a
// seal before the part that is too much.
//
// One thread; packing, hashing and the disk have others.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "sandbox/snapshots.h"
#include "store/arrivals.h"
#include "store/blobs.h"
#include "store/part_writer.h"
#include "store/snapshot_pack.h"

namespace atl::sandbox {

struct Sealed {
  store::SnapshotRow row;
  uint64_t new_bytes = 0;                 // that had to be stored for it
  std::chrono::microseconds frozen = {};  // of one that was cut for it: see Kept
};

// While they come, in bytes.
inline constexpr uint64_t kMaxImportBytes = store::kMaxSealedBytes + store::kMaxManifestBytes;
inline constexpr uint64_t kMaxImportsOfTenant = 2 * kMaxImportBytes;
inline constexpr uint64_t kMaxImportsOfHost = 4 * kMaxImportBytes;

// A sealed snapshot on its way out: its blobs stay while this does.
struct PackDownload {
  explicit PackDownload(store::BlobKeeper& keeper) : hold(keeper), blobs(keeper.blobs()) {}
  store::BlobKeeper::Hold hold;
  store::Blobs& blobs;
  std::string manifest;
  std::vector<store::SnapshotPart> parts = {};
  uint64_t bytes = 0;  // of all
};

class Seals {
 public:
  struct Places {
    store::BlobKeeper& keeper;    // outlives all tasks of the executor
    std::string state_directory;  // with the keys that are believed
    store::ArrivalLimits imports = {kMaxImportBytes, kMaxImportsOfTenant, kMaxImportsOfHost};
  };
  Seals(Sandboxes& sandboxes, Snapshots& snapshots, Places places);
  ~Seals() { threads_.join(); }

  // One that is sealed stays as it is.
  Task<Result<Sealed>> seal(store::TenantId tenant, SnapshotId id);
  // Keeps what the sandbox holds, and seals that. After an error neither stays.
  Task<Result<Sealed>> cut(std::shared_ptr<Sandbox> sandbox, CutSnapshot request);
  // kConflict with reason snapshot_not_sealed.
  Task<Result<std::shared_ptr<PackDownload>>> open(store::TenantId tenant, SnapshotId id);

  // One that is being received.
  class Upload;
  Task<Result<std::shared_ptr<Upload>>> begin(store::TenantId tenant);
  Task<Result<void>> add(std::shared_ptr<Upload> upload, std::string bytes);
  // That it is whole; gives the digest of its manifest, which two different files never share.
  Result<Digest> check(Upload& upload) const;
  // What becomes of it. When that is nothing, collect_soon() after the upload is gone.
  Task<Result<Kept>> finish(std::shared_ptr<Upload> upload);

  // Removes blobs that no row needs; none if it is not sure of one.
  Task<Result<void>> collect();
  void collect_soon();

 private:
  struct Packing;
  // For what the tenant wants to have sealed besides what it has.
  Task<Result<std::shared_ptr<Packing>>> begin_packing(store::TenantId tenant);
  Task<Result<store::SnapshotRow>> pack(store::SnapshotRow row, std::shared_ptr<Packing> packing);
  Task<Result<void>> store_manifest(std::shared_ptr<Packing> packing, std::string bytes);
  Task<Result<Kept>> restore(std::shared_ptr<Upload> upload);
  Task<Result<void>> unpack(std::shared_ptr<Sandbox> sandbox, std::shared_ptr<Upload> upload);
  // That the tenant has what the files lie on.
  Result<void> check_image(store::TenantId tenant, const store::SnapshotManifest& manifest);
  Task<Result<size_t>> collect_once();

  Sandboxes& sandboxes_;
  Snapshots& snapshots_;
  Services& services_;
  Places places_;
  store::ArrivalBounds arrivals_;
  boost::asio::thread_pool threads_;
  bool collecting_ = false, again_ = false;
};

}  // namespace atl::sandbox
