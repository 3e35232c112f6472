// A pack: how a template travels, as a tar of template.toml and the files it names. Never an image:
// it is built where it arrives. Whatever is in it is somebody else's; nothing of it is unpacked
// here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "store/arrivals.h"
#include "store/lost_found.h"
#include "store/template_manifest.h"

namespace atl::store {

struct TemplatePack {
  Fd file;
  Digest digest;  // of the archive
  Digest inputs;  // of what is in it, however it is packed, and of the way images are made
  std::string manifest_text;
  TemplateManifest manifest;
};

// Reads all of it: for a thread that may wait. kInvalid with reason invalid_template or
// invalid_archive.
Result<TemplatePack> open_template_pack(Fd file);

// A file of a pack: its path there, and where its bytes are.
struct PackedFile {
  std::string path;
  Fd file;
};

// A pack of one manifest and files that it names, or of a folder; in a file without a name beside
// `directory`.
Result<Fd> pack_manifest(std::string_view text, const std::string& directory,
                         const std::vector<PackedFile>& files = {});
Result<Fd> pack_folder(const std::string& folder, const std::string& directory);

// While they come, in bytes.
inline constexpr uint64_t kMaxPackBytes = 8ull << 30;
inline constexpr uint64_t kMaxPacksOfTenant = 16ull << 30;
inline constexpr uint64_t kMaxPacksOfHost = 32ull << 30;

// The packs of templates that were built, by digest.
class TemplatePacks {
 public:
  static Result<TemplatePacks> open(const std::string& directory);

  Result<void> keep(const TemplatePack& pack);
  // kNotFound if it is not kept.
  Result<Fd> find(const Digest& digest) const;
  // Does that with all but these.
  Result<void> keep_only(const std::vector<Digest>& wanted, Unlisted fate = Unlisted::kRemove);
  const std::string& directory() const { return path_; }
  // For one that a client sends.
  Result<Arrival> begin(TenantId tenant) const { return arrivals_.begin(tenant); }

 private:
  explicit TemplatePacks(std::string path)
      : path_(std::move(path)),
        arrivals_(path_, {kMaxPackBytes, kMaxPacksOfTenant, kMaxPacksOfHost}) {}
  std::string path_;
  Arrivals arrivals_;
};

}  // namespace atl::store
