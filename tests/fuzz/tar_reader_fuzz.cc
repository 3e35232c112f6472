// Archives of strangers, as atolld takes them apart: every entry has the bytes it says, and names
// and links are what a caller can check.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/fd.h"
#include "base/file.h"
#include "store/tar_reader.h"

namespace {

using namespace atl;

constexpr uint64_t kEnoughBytes = 1 << 20;  // of what a small archive can unpack to
constexpr size_t kEnoughEntries = 1000;

// Whether to go on with the next one.
bool read_entry(store::TarReader& reader, const store::TarEntry& entry, uint64_t& total) {
  std::array<char, 4096> piece;
  uint64_t read = 0;
  for (;;) {
    auto count = reader.read(piece);
    if (!count) return false;
    ATOLL_CHECK(*count <= piece.size());
    read += *count;
    total += *count;
    if (*count == 0) break;
    if (total > kEnoughBytes) return false;
  }
  ATOLL_CHECK(read == entry.size);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Fd file(memfd_create("tar", MFD_CLOEXEC));
  ATOLL_CHECK(file && write_all(file.get(), {reinterpret_cast<const char*>(data), size}).ok());
  auto reader = store::TarReader::open(file.get());
  if (!reader) return 0;
  uint64_t total = 0;
  for (size_t i = 0; i < kEnoughEntries; ++i) {
    auto entry = reader->next();
    if (!entry || !*entry || !read_entry(*reader, **entry, total)) return 0;
  }
  return 0;
}
