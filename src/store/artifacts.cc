#include "store/artifacts.h"

#include <unistd.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"

namespace atl::store {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUnfinished = ".partial";
constexpr size_t kMaxIndexBytes = 4 * 1024 * 1024;
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxTypeBytes = 128;

uint64_t bytes_of(const std::vector<Artifact>& artifacts) {
  uint64_t bytes = 0;
  for (const Artifact& artifact : artifacts) bytes += artifact.size;
  return bytes;
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return Error::from_errno("remove " + path, error.value());
  return {};
}

Error corrupt(const SandboxId& sandbox) {
  return Error(Code::kCorrupt,
               "the index of the artifacts of " + sandbox.string() + " is malformed");
}

}  // namespace

std::string Artifacts::encode(const Index& index) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u64(static_cast<uint64_t>(index.tenant));
  writer.u64(static_cast<uint64_t>(index.expires_ms));
  writer.u32(static_cast<uint32_t>(index.artifacts.size()));
  for (const Artifact& artifact : index.artifacts) {
    writer.text(artifact.name);
    writer.u64(artifact.size);
    writer.text(artifact.type);
    writer.u64(static_cast<uint64_t>(artifact.modified_ns));
    const auto& digest = artifact.sha256.bytes();
    writer.bytes({reinterpret_cast<const char*>(digest.data()), digest.size()});
  }
  return bytes;
}

Result<std::optional<Artifacts::Index>> Artifacts::read_index(const SandboxId& sandbox) const {
  auto bytes = read_file(directory_ + "/" + sandbox.string() + "/index", kMaxIndexBytes);
  if (!bytes && bytes.error().code() == Code::kNotFound) return std::optional<Index>();
  if (!bytes) return std::move(bytes).error();
  ByteReader reader(*bytes);
  Index index;
  index.tenant = static_cast<int64_t>(reader.u64());
  index.expires_ms = static_cast<int64_t>(reader.u64());
  uint32_t count = reader.u32();
  if (count > kMaxArtifacts) return corrupt(sandbox);
  for (uint32_t i = 0; i < count && reader.ok(); ++i) {
    std::string name(reader.text(kMaxNameBytes));
    uint64_t size = reader.u64();
    std::string type(reader.text(kMaxTypeBytes));
    auto modified_ns = static_cast<int64_t>(reader.u64());
    std::string_view digest = reader.bytes(Digest::kBytes);
    if (digest.size() != Digest::kBytes) return corrupt(sandbox);
    std::span<const unsigned char, Digest::kBytes> view(
        reinterpret_cast<const unsigned char*>(digest.data()), Digest::kBytes);
    index.artifacts.push_back({name, size, type, modified_ns, Digest::from_bytes(view)});
  }
  if (!reader.done()) return corrupt(sandbox);
  return std::optional(std::move(index));
}

Result<std::vector<SandboxId>> Artifacts::kept() const {
  std::vector<SandboxId> ids;
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end; it.increment(error))
    if (auto id = SandboxId::parse(it->path().filename().string())) ids.push_back(*id);
  if (error) return Error::from_errno("list " + directory_, error.value());
  return ids;
}

Result<Artifacts> Artifacts::open(const std::string& directory, uint64_t budget_bytes) {
  ATOLL_TRY_VOID(make_directory(directory, 0700));
  std::error_code error;
  std::vector<std::string> unfinished;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == kUnfinished) unfinished.push_back(it->path().string());
  if (error) return Error::from_errno("list " + directory, error.value());
  for (const std::string& path : unfinished) ATOLL_TRY_VOID(remove_tree(path));
  Artifacts artifacts(directory, budget_bytes);
  ATOLL_TRY(std::vector<SandboxId> ids, artifacts.kept());
  for (const SandboxId& id : ids) {
    auto index = artifacts.read_index(id);
    if (index && *index) artifacts.used_bytes_ += bytes_of((*index)->artifacts);
  }
  return artifacts;
}

Result<std::vector<Artifact>> Artifacts::list(TenantId tenant, const SandboxId& sandbox,
                                              int64_t now_ms) {
  ATOLL_TRY(std::optional<Index> index, read_index(sandbox));
  bool theirs = index && index->tenant == tenant.number() && index->expires_ms > now_ms;
  return theirs ? std::move(index->artifacts) : std::vector<Artifact>();
}

Result<Fd> Artifacts::open_bytes(const SandboxId& sandbox, size_t number) const {
  return open_file(directory_ + "/" + sandbox.string() + "/" + std::to_string(number), O_RDONLY);
}

Result<void> Artifacts::remove(const SandboxId& sandbox) {
  auto index = read_index(sandbox);
  uint64_t bytes = index && *index ? bytes_of((*index)->artifacts) : 0;
  ATOLL_TRY_VOID(remove_tree(directory_ + "/" + sandbox.string()));
  used_bytes_ -= std::min(used_bytes_, bytes);
  return {};
}

Result<void> Artifacts::sweep(int64_t now_ms) {
  ATOLL_TRY(std::vector<SandboxId> ids, kept());
  for (const SandboxId& id : ids) {
    auto index = read_index(id);
    // What is damaged can never be given to anybody; what could not be read now may yet be.
    if (!index) log_warning("artifacts are unreadable", {{"sandbox", id.view()}, index.error()});
    if (!index && index.error().code() != Code::kCorrupt) continue;
    bool expired = !index || !*index || (*index)->expires_ms <= now_ms;
    if (expired) ATOLL_TRY_VOID(remove(id));
  }
  return {};
}

Artifacts::Collection Artifacts::collect(const SandboxId& sandbox) {
  return Collection(*this, sandbox, directory_ + "/" + sandbox.string() + std::string(kUnfinished));
}

Artifacts::Collection::Collection(Collection&& other) noexcept
    : artifacts_(std::exchange(other.artifacts_, nullptr)),
      sandbox_(other.sandbox_),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      made_(std::exchange(other.made_, false)),
      bytes_(std::exchange(other.bytes_, 0)),
      done_(std::move(other.done_)) {}

Artifacts::Collection::~Collection() {
  if (!artifacts_ || !made_) return;
  artifacts_->used_bytes_ -= bytes_;
  auto removed = remove_tree(path_);
  if (!removed) log_warning("left half-kept artifacts", {removed.error()});
}

Result<void> Artifacts::Collection::begin(uint64_t size) {
  bool fits = done_.size() < kMaxArtifacts && size <= kMaxArtifactBytes - bytes_ &&
              artifacts_->used_bytes_ + size <= artifacts_->budget_bytes_;
  if (!fits) return Error(Code::kExhausted, "there is no room for the artifact");
  if (!made_) ATOLL_TRY_VOID(remove_tree(path_));
  ATOLL_TRY_VOID(make_directory(path_, 0700));
  made_ = true;
  std::string name = path_ + "/" + std::to_string(done_.size());
  ATOLL_TRY(file_, open_file(name, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  bytes_ += size;
  artifacts_->used_bytes_ += size;
  return {};
}

Result<void> Artifacts::Collection::append(std::string_view bytes) {
  return write_all(file_.get(), bytes);
}

void Artifacts::Collection::end(Artifact artifact) {
  file_ = Fd();
  done_.push_back(std::move(artifact));
}

Result<void> Artifacts::Collection::keep(TenantId tenant, int64_t now_ms) {
  if (done_.empty()) return {};
  std::string encoded = Artifacts::encode({tenant.number(), now_ms + kArtifactTimeMs, done_});
  ATOLL_TRY(Fd index, open_file(path_ + "/index", O_WRONLY | O_CREAT | O_TRUNC, 0600));
  ATOLL_TRY_VOID(write_all(index.get(), encoded));
  std::string final = artifacts_->directory_ + "/" + sandbox_.string();
  ATOLL_TRY_VOID(remove_tree(final));
  if (rename(path_.c_str(), final.c_str()) != 0) return Error::system("rename artifacts");
  // What was begun and not ended is no artifact.
  unlink((final + "/" + std::to_string(done_.size())).c_str());
  artifacts_->used_bytes_ -= bytes_ - bytes_of(done_);
  artifacts_ = nullptr;
  return {};
}

}  // namespace atl::store
