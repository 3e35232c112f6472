#include "builder/module_sum.h"

#include <array>
#include <map>

#include <openssl/evp.h>

#include "store/sha256.h"

namespace atl::builder {
namespace {

std::string base64(const Digest& digest) {
  std::array<unsigned char, 2 * Digest::kBytes> text;
  int length = EVP_EncodeBlock(text.data(), digest.bytes().data(), Digest::kBytes);
  return {reinterpret_cast<char*>(text.data()), static_cast<size_t>(length)};
}

}  // namespace

Result<std::string> sum_of_module(ArchiveFile& zip) {
  std::map<std::string, std::string> files;
  while (true) {
    ATOLL_TRY(std::optional<ArchiveEntry> entry, zip.next());
    if (!entry) break;
    bool plain =
        entry->type == ArchiveEntry::Type::kFile && entry->path.find('\n') == std::string::npos;
    if (!plain) return Error(Code::kInvalid, entry->path + " is no plain file of a Go module");
    store::Sha256 hash;
    uint64_t read = 0;
    ATOLL_TRY_VOID(zip.read([&](std::string_view bytes, uint64_t offset) -> Result<void> {
      if (offset != read) return Error(Code::kInvalid, "a file of a Go module has a hole");
      read += bytes.size();
      hash.update(bytes);
      return {};
    }));
    bool added = files.emplace(entry->path, hash.finish().string()).second;
    if (!added) return Error(Code::kInvalid, entry->path + " is in the Go module twice");
  }
  store::Sha256 all;
  for (const auto& [name, digest] : files) all.update(digest + "  " + name + "\n");
  return "h1:" + base64(all.finish());
}

}  // namespace atl::builder
