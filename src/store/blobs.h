// Blobs: bytes that are named by their SHA-256. The store behind it can be another one: all that
// is asked of it is to put, open, remove and list. Whoever needs a blob says so in a catalog; what
// no catalog names is garbage.
//
// BlobKeeper is what the rest of the program uses: it keeps what is being put together from being
// taken for garbage. May be used by several threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/blob_shares.h"
#include "store/lost_found.h"

namespace atl::store {

class Blobs {
 public:
  virtual ~Blobs() = default;

  enum class Put : unsigned char { kNew, kThere };
  // `name` is the SHA-256 of the bytes, which the caller has made of them. Whole or not there, but
  // after a loss of power only what was put before the last sync(). kExhausted with reason
  // disk_full.
  virtual Result<Put> put(const Digest& name, std::string_view bytes) = 0;
  // kNotFound if it is not there.
  virtual Result<Fd> open(const Digest& name) const = 0;
  // Absence is a success.
  virtual Result<void> remove(const Digest& name) = 0;
  // The same, but it is kept for a week: see lost_found.h.
  virtual Result<void> set_aside(const Digest& name) = 0;
  virtual Result<std::vector<Digest>> list() const = 0;
  // All that was put until now stays.
  virtual Result<void> sync() = 0;
};

// In a directory of this host, two levels deep.
class DirectoryBlobs final : public Blobs {
 public:
  // Nothing is put that would leave the file system less than `floor_bytes`.
  static Result<std::unique_ptr<DirectoryBlobs>> open(const std::string& directory,
                                                      uint64_t floor_bytes);

  Result<Put> put(const Digest& name, std::string_view bytes) override;
  Result<Fd> open(const Digest& name) const override;
  Result<void> remove(const Digest& name) override;
  Result<void> set_aside(const Digest& name) override;
  Result<std::vector<Digest>> list() const override;
  Result<void> sync() override;

 private:
  DirectoryBlobs(std::string path, Fd directory, uint64_t floor_bytes)
      : path_(std::move(path)), directory_(std::move(directory)), floor_bytes_(floor_bytes) {}
  std::string path_;
  Fd directory_;
  uint64_t floor_bytes_;
};

class BlobKeeper {
 public:
  explicit BlobKeeper(Blobs& blobs) : blobs_(blobs) {}

  // Blobs that are put or held by it are no garbage while it lives.
  class Hold {
   public:
    // What is put counts for `claim`, and is refused before it is if that is too much.
    explicit Hold(BlobKeeper& keeper, std::unique_ptr<BlobShares::Claim> claim = nullptr)
        : keeper_(keeper), claim_(std::move(claim)) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Result<Blobs::Put> put(const Digest& name, std::string_view bytes);
    void add(const Digest& name);
    BlobShares::Claim& claim() { return *claim_; }

   private:
    BlobKeeper& keeper_;
    std::unique_ptr<BlobShares::Claim> claim_;
    std::set<Digest> names_;
  };

  // Removes garbage; one at a time. It is made first, then whoever made it finds out what is named:
  // so what got its name meanwhile is either among that or was still held, and stays.
  class Collection {
   public:
    explicit Collection(BlobKeeper& keeper);
    ~Collection();
    Collection(const Collection&) = delete;
    // Does that with what is neither named nor held, nor was held since this was made; gives how
    // many.
    Result<size_t> run(const std::set<Digest>& named, Unlisted fate = Unlisted::kRemove);

   private:
    BlobKeeper& keeper_;
  };

  Blobs& blobs() { return blobs_; }
  BlobShares& shares() { return shares_; }

 private:
  BlobShares shares_;
  std::mutex mutex_;
  Blobs& blobs_;
  std::map<Digest, size_t> held_;
  bool under_way_ = false;
  std::set<Digest> let_go_;  // while a collection is under way
};

}  // namespace atl::store
