#include "builder/oci_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "builder/oci_manifest.h"
#include "linux/open_resolved.h"
#include "store/sha256.h"

namespace atl::builder {
namespace {

constexpr int kMaxIndexes = 4;  // in one another

Error invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

// Links stay inside: `docker save` uses them for layers that occur twice.
Result<Fd> open_inside(int directory, const std::string& path) {
  Fd file = linux::open_resolved(directory, path,
                                 {.flags = O_RDONLY | O_NONBLOCK,
                                  .mode = 0,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS});
  if (!file && errno == ENOENT) return Error(Code::kNotFound, path + " is not in the image");
  if (!file) return Error::system("open " + path);
  struct stat facts;
  if (fstat(file.get(), &facts) != 0) return Error::system("stat " + path);
  if (!S_ISREG(facts.st_mode)) return invalid(path + " is not a file");
  return file;
}

Result<Fd> open_blob(int directory, const Descriptor& blob) {
  auto file = open_inside(directory, "blobs/sha256/" + blob.digest.string());
  if (!file) return invalid(std::move(file).error().message());
  ATOLL_TRY(Digest found, store::sha256_of_fd(file->get()));
  if (found != blob.digest)
    return invalid("the blob " + oci_digest_text(blob.digest) + " has other bytes");
  if (lseek(file->get(), 0, SEEK_SET) != 0) return Error::system("lseek");
  return std::move(*file);
}

Result<std::vector<Fd>> open_index(int directory, std::string text) {
  for (int depth = 0; depth <= kMaxIndexes; ++depth) {
    ATOLL_TRY(OciDocument document, parse_oci_document(text));
    std::vector<Fd> layers;
    for (const Descriptor& layer : document.layers) {
      ATOLL_TRY(Fd blob, open_blob(directory, layer));
      layers.push_back(std::move(blob));
    }
    if (!document.chosen) return layers;
    ATOLL_TRY(Fd next, open_blob(directory, *document.chosen));
    ATOLL_TRY(text, read_all(next.get(), kMaxManifestBytes));
  }
  return invalid("the indexes of the image lead nowhere");
}

Result<std::vector<Fd>> open_docker_layers(int directory, std::string_view text) {
  ATOLL_TRY(std::vector<std::string> paths, parse_docker_manifest(text));
  std::vector<Fd> layers;
  for (const std::string& path : paths) {
    auto layer = open_inside(directory, path);
    if (!layer) return invalid(std::move(layer).error().message());
    layers.push_back(std::move(*layer));
  }
  return layers;
}

}  // namespace

Result<std::vector<Fd>> open_layers(int directory) {
  auto index = open_inside(directory, "index.json");
  if (!index && index.error().code() != Code::kNotFound) return std::move(index).error();
  if (index) {
    ATOLL_TRY(std::string text, read_all(index->get(), kMaxManifestBytes));
    return open_index(directory, std::move(text));
  }
  auto manifest = open_inside(directory, "manifest.json");
  if (!manifest) return invalid("has neither index.json nor manifest.json: it is not an image");
  ATOLL_TRY(std::string text, read_all(manifest->get(), kMaxManifestBytes));
  return open_docker_layers(directory, text);
}

}  // namespace atl::builder
