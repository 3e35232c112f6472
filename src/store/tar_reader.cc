#include "store/tar_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace atl::store {

namespace {

constexpr size_t kStepBytes = 64 * 1024;

Error invalid(std::string message) {
  return Error(Code::kInvalid, std::move(message)).with_reason("invalid_archive");
}

Error too_large(std::string message) {
  return Error(Code::kExhausted, std::move(message)).with_reason("archive_too_large");
}

// Names are bytes to us. libarchive converts those of pax records to the charset of the locale,
// which in the C locale fails for every name that is not ASCII.
class Utf8Locale {
 public:
  Utf8Locale() : made_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    ATOLL_CHECK(made_ != nullptr);
    before_ = uselocale(made_);
  }
  ~Utf8Locale() {
    uselocale(before_);
    freelocale(made_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t made_;
  locale_t before_;
};

TarEntry::Type type_of(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return TarEntry::Type::kHardLink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return TarEntry::Type::kFile;
    case AE_IFDIR:
      return TarEntry::Type::kDirectory;
    case AE_IFLNK:
      return TarEntry::Type::kSymlink;
    default:
      return TarEntry::Type::kOther;
  }
}

int64_t time_of(archive_entry* entry) {
  constexpr int64_t kMaxSeconds = INT64_MAX / 1'000'000'000 - 1;
  if (!archive_entry_mtime_is_set(entry)) return 0;
  int64_t seconds = std::clamp<int64_t>(archive_entry_mtime(entry), 0, kMaxSeconds);
  return seconds * 1'000'000'000 +
         std::clamp<int64_t>(archive_entry_mtime_nsec(entry), 0, 999'999'999);
}

}  // namespace

struct TarReader::Source {
  int fd = -1;
  uint64_t packed_bytes = 0;
  off_t offset = 0;
  std::vector<char> buffer = std::vector<char>(kStepBytes);

  static la_ssize_t read(archive*, void* data, const void** bytes) {
    auto* self = static_cast<Source*>(data);
    ssize_t count = pread(self->fd, self->buffer.data(), self->buffer.size(), self->offset);
    if (count > 0) self->offset += count;
    *bytes = self->buffer.data();
    return count;
  }
};

void TarReader::Free::operator()(archive* reader) const { archive_read_free(reader); }

TarReader::TarReader(std::unique_ptr<Source> source, std::unique_ptr<archive, Free> reader,
                     TarOrigin origin)
    : source_(std::move(source)), reader_(std::move(reader)), origin_(origin) {}

TarReader::TarReader(TarReader&&) noexcept = default;
TarReader& TarReader::operator=(TarReader&&) noexcept = default;
TarReader::~TarReader() = default;

Error TarReader::failure() const {
  const char* text = archive_error_string(reader_.get());
  return invalid("the archive cannot be read: " + std::string(text ? text : "no reason given"));
}

Result<TarReader> TarReader::open(int fd, TarOrigin origin) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return Error::system("stat an archive");
  auto source = std::make_unique<Source>();
  source->fd = fd;
  source->packed_bytes = static_cast<uint64_t>(facts.st_size);
  std::unique_ptr<archive, Free> reader(archive_read_new());
  ATOLL_CHECK(reader != nullptr);
  // ARCHIVE_WARN would mean that it starts a program to decompress.
  bool supported = archive_read_support_filter_gzip(reader.get()) == ARCHIVE_OK &&
                   archive_read_support_filter_zstd(reader.get()) == ARCHIVE_OK &&
                   archive_read_support_format_tar(reader.get()) == ARCHIVE_OK;
  if (!supported) return Error(Code::kUnsupported, "libarchive has no gzip, zstd or tar built in");
  Source* borrowed = source.get();
  TarReader made(std::move(source), std::move(reader), origin);
  Utf8Locale locale;
  if (archive_read_open(made.reader_.get(), borrowed, nullptr, Source::read, nullptr) != ARCHIVE_OK)
    return made.failure();
  return made;
}

Result<std::optional<TarEntry>> TarReader::next() {
  if (entry_bytes_left_ > 0) return invalid("an entry was not read to its end");
  Utf8Locale locale;
  archive_entry* found = nullptr;
  int result = archive_read_next_header(reader_.get(), &found);
  if (result == ARCHIVE_EOF) return std::optional<TarEntry>();
  // A warning is a name or field that was changed or left out.
  if (result != ARCHIVE_OK) return failure();
  bool is_bounded = origin_ == TarOrigin::kStranger;
  if (++entries_ > kMaxTarEntries && is_bounded)
    return too_large("the archive has more than 200000 entries");
  TarEntry entry;
  const char* path = archive_entry_pathname(found);
  if (path == nullptr) return invalid("an entry has no name");
  entry.path = path;
  entry.type = type_of(found);
  const char* target = entry.type == TarEntry::Type::kHardLink ? archive_entry_hardlink(found)
                                                               : archive_entry_symlink(found);
  if (target != nullptr) entry.target = target;
  if (entry.path.size() >= PATH_MAX || entry.target.size() >= PATH_MAX)
    return invalid("the name of an entry has more than 4095 bytes");
  entry.mode = static_cast<uint32_t>(archive_entry_perm(found)) & 0777;
  entry.modified_ns = time_of(found);
  if (entry.type != TarEntry::Type::kFile) return std::optional(std::move(entry));
  int64_t size = archive_entry_size(found);
  if (size < 0) return invalid("an entry has a negative size");
  entry.size = static_cast<uint64_t>(size);
  if (entry.size > kMaxTarBytes && is_bounded) return too_large("an entry claims more than 64 GiB");
  entry_bytes_left_ = entry.size;
  return std::optional(std::move(entry));
}

Result<size_t> TarReader::read(std::span<char> into) {
  if (entry_bytes_left_ == 0) return size_t{0};
  size_t most = std::min<uint64_t>(into.size(), entry_bytes_left_);
  // Holes of sparse files come as zeros.
  la_ssize_t count = archive_read_data(reader_.get(), into.data(), most);
  if (count < 0) return failure();
  if (count == 0) return invalid("an entry ends before its size");
  auto taken = static_cast<size_t>(count);
  entry_bytes_left_ -= taken;
  unpacked_bytes_ += taken;
  if (origin_ == TarOrigin::kSealed) return taken;
  uint64_t most_unpacked = std::max(kTarRatioFloor, source_->packed_bytes * kMaxTarRatio);
  if (unpacked_bytes_ > std::min(most_unpacked, kMaxTarBytes))
    return too_large("the archive unpacks to more than 64 GiB or 1000 times its size");
  return taken;
}

}  // namespace atl::store
