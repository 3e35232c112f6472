#include "store/zstd.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

namespace atl::store {
namespace {

constexpr const char* kLevel = "1";
constexpr size_t kSlackBytes = 64 * 1024;  // of bytes that do not get smaller

template <int (*release)(archive*)>
struct Free {
  void operator()(archive* one) const { release(one); }
};

Error failed(const char* what, archive* one) {
  const char* why = archive_error_string(one);
  return Error(Code::kSystem, std::string(what) + ": " + (why != nullptr ? why : "libarchive"));
}

}  // namespace

Result<std::string> compress(std::string_view bytes) {
  std::unique_ptr<archive, Free<archive_write_free>> writer(archive_write_new());
  std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                      archive_entry_free);
  if (!writer || !entry) return Error(Code::kSystem, "libarchive: no memory");
  std::string packed(bytes.size() + bytes.size() / 64 + kSlackBytes, '\0');
  size_t used = 0;
  archive* one = writer.get();
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  bool good =
      archive_write_set_format_raw(one) == ARCHIVE_OK &&
      archive_write_add_filter_zstd(one) == ARCHIVE_OK &&
      archive_write_set_filter_option(one, "zstd", "compression-level", kLevel) == ARCHIVE_OK &&
      archive_write_open_memory(one, packed.data(), packed.size(), &used) == ARCHIVE_OK &&
      archive_write_header(one, entry.get()) == ARCHIVE_OK &&
      archive_write_data(one, bytes.data(), bytes.size()) ==
          static_cast<la_ssize_t>(bytes.size()) &&
      archive_write_close(one) == ARCHIVE_OK;
  if (!good) return failed("compress", one);
  packed.resize(used);
  return packed;
}

Result<std::string> decompress(std::string_view packed, size_t size) {
  std::unique_ptr<archive, Free<archive_read_free>> reader(archive_read_new());
  if (!reader) return Error(Code::kSystem, "libarchive: no memory");
  archive* one = reader.get();
  archive_entry* entry = nullptr;
  bool open = archive_read_support_filter_zstd(one) == ARCHIVE_OK &&
              archive_read_support_format_raw(one) == ARCHIVE_OK &&
              archive_read_open_memory(one, packed.data(), packed.size()) == ARCHIVE_OK &&
              archive_read_next_header(one, &entry) == ARCHIVE_OK &&
              archive_filter_code(one, 0) == ARCHIVE_FILTER_ZSTD;
  if (!open) return Error(Code::kCorrupt, "the bytes are not packed by zstd");
  std::string bytes(size + 1, '\0');  // one more, so that what is too long is seen
  size_t done = 0;
  while (done < bytes.size()) {
    la_ssize_t count = archive_read_data(one, bytes.data() + done, bytes.size() - done);
    if (count < 0) return Error(Code::kCorrupt, "the packed bytes are broken");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  if (done != size) return Error(Code::kCorrupt, "other bytes were packed than was said");
  bytes.resize(size);
  return bytes;
}

}  // namespace atl::store
