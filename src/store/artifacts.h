// Artifacts that outlive their sandbox: `<directory>/<sandbox id>/<number>` for the bytes and
// `index` for what they are and whose. A collection is written in a directory of another name and
// renamed when it is whole, so a crash leaves nothing half-kept; open() removes what it left.
//
// All of a host share one budget. Belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/sha256.h"
#include "store/tenant.h"

namespace atl::store {

inline constexpr size_t kMaxArtifacts = 256;                // of one sandbox
inline constexpr uint64_t kMaxArtifactBytes = 64ull << 20;  // of one sandbox, together
inline constexpr int64_t kArtifactTimeMs = 24 * 3600 * 1000;

struct Artifact {
  std::string name;  // relative, clean, any bytes
  uint64_t size = 0;
  std::string type;
  int64_t modified_ns = 0;
  Digest sha256;
};

class Artifacts {
 public:
  static Result<Artifacts> open(const std::string& directory, uint64_t budget_bytes);

  // What was kept of a sandbox and has not expired; empty for another tenant.
  Result<std::vector<Artifact>> list(TenantId tenant, const SandboxId& sandbox, int64_t now_ms);
  // The bytes of one of them.
  Result<Fd> open_bytes(const SandboxId& sandbox, size_t number) const;
  // Removes what has expired.
  Result<void> sweep(int64_t now_ms);

  // Puts one collection together; destroyed before keep() it leaves nothing.
  class Collection {
   public:
    Collection(Collection&& other) noexcept;
    Collection& operator=(Collection&&) = delete;
    ~Collection();
    // A new file. kExhausted when the budget of the host has no room for it.
    Result<void> begin(uint64_t size);
    Result<void> append(std::string_view bytes);
    void end(Artifact artifact);
    // Does nothing if there is no file.
    Result<void> keep(TenantId tenant, int64_t now_ms);

   private:
    friend class Artifacts;
    Collection(Artifacts& artifacts, SandboxId sandbox, std::string path)
        : artifacts_(&artifacts), sandbox_(sandbox), path_(std::move(path)) {}
    Artifacts* artifacts_;
    SandboxId sandbox_;
    std::string path_;
    Fd file_;
    bool made_ = false;  // the directory
    uint64_t bytes_ = 0;
    std::vector<Artifact> done_;
  };
  Collection collect(const SandboxId& sandbox);

  const std::string& directory() const { return directory_; }
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  struct Index {
    int64_t tenant = 0;
    int64_t expires_ms = 0;
    std::vector<Artifact> artifacts;
  };
  Artifacts(std::string directory, uint64_t budget_bytes)
      : directory_(std::move(directory)), budget_bytes_(budget_bytes) {}
  static std::string encode(const Index& index);
  Result<std::optional<Index>> read_index(const SandboxId& sandbox) const;
  Result<std::vector<SandboxId>> kept() const;
  Result<void> remove(const SandboxId& sandbox);

  std::string directory_;
  uint64_t budget_bytes_;
  uint64_t used_bytes_ = 0;
};

}  // namespace atl::store
