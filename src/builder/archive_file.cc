#include "builder/archive_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace atl::builder {
namespace {

constexpr size_t kStepBytes = 256 * 1024;

Error invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

ArchiveEntry::Type type_of(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return ArchiveEntry::Type::kHardLink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return ArchiveEntry::Type::kFile;
    case AE_IFDIR:
      return ArchiveEntry::Type::kDirectory;
    case AE_IFLNK:
      return ArchiveEntry::Type::kSymlink;
    default:
      return ArchiveEntry::Type::kOther;
  }
}

// ARCHIVE_WARN would mean that it starts a program to decompress.
bool support_tar(archive* reader) {
  return archive_read_support_filter_gzip(reader) == ARCHIVE_OK &&
         archive_read_support_filter_zstd(reader) == ARCHIVE_OK &&
         archive_read_support_filter_xz(reader) == ARCHIVE_OK &&
         archive_read_support_format_tar(reader) == ARCHIVE_OK;
}

bool support_zip(archive* reader) {
  return archive_read_support_format_zip_seekable(reader) == ARCHIVE_OK;
}

}  // namespace

struct ArchiveFile::Source {
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
  static la_int64_t seek(archive*, void* data, la_int64_t offset, int whence) {
    auto* self = static_cast<Source*>(data);
    auto size = static_cast<la_int64_t>(self->packed_bytes);
    la_int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? self->offset : size;
    if (offset < -from || offset > size - from) return ARCHIVE_FATAL;
    return self->offset = from + offset;
  }
};

void ArchiveFile::Free::operator()(archive* reader) const { archive_read_free(reader); }

ArchiveFile::ArchiveFile(std::unique_ptr<Source> source, std::unique_ptr<archive, Free> reader,
                         UnpackBudget& budget)
    : source_(std::move(source)), reader_(std::move(reader)), budget_(budget) {}
ArchiveFile::ArchiveFile(ArchiveFile&&) noexcept = default;
ArchiveFile::~ArchiveFile() = default;

Error ArchiveFile::failure() const {
  const char* text = archive_error_string(reader_.get());
  return invalid("the archive cannot be read: " + std::string(text ? text : "no reason given"));
}

Result<ArchiveFile> ArchiveFile::open(int fd, UnpackBudget& budget) {
  return open_as(fd, budget, support_tar);
}

Result<ArchiveFile> ArchiveFile::open_zip(int fd, UnpackBudget& budget) {
  return open_as(fd, budget, support_zip);
}

Result<ArchiveFile> ArchiveFile::open_as(int fd, UnpackBudget& budget, Support support) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return Error::system("stat an archive");
  // Names are bytes to us; in the C locale libarchive fails for every one that is not ASCII. The
  // process is a stage of a build and has no other use for a locale.
  if (setlocale(LC_CTYPE, "C.UTF-8") == nullptr) return Error(Code::kSystem, "no UTF-8 locale");
  auto source = std::make_unique<Source>();
  source->fd = fd;
  source->packed_bytes = static_cast<uint64_t>(facts.st_size);
  std::unique_ptr<archive, Free> reader(archive_read_new());
  ATOLL_CHECK(reader != nullptr);
  if (!support(reader.get())) return Error(Code::kUnsupported, "libarchive lacks a format");
  Source* borrowed = source.get();
  ArchiveFile made(std::move(source), std::move(reader), budget);
  archive* opened = made.reader_.get();
  if (archive_read_set_seek_callback(opened, Source::seek) != ARCHIVE_OK ||
      archive_read_open(opened, borrowed, nullptr, Source::read, nullptr) != ARCHIVE_OK)
    return made.failure();
  return made;
}

Result<std::optional<ArchiveEntry>> ArchiveFile::next() {
  archive_entry* found = nullptr;
  int result = archive_read_next_header(reader_.get(), &found);
  if (result == ARCHIVE_EOF) return std::optional<ArchiveEntry>();
  // A warning is a name or field that was changed or left out.
  if (result != ARCHIVE_OK) return failure();
  if (budget_.entries == 0) return invalid("the image has more than 1000000 entries");
  --budget_.entries;
  ArchiveEntry entry;
  const char* path = archive_entry_pathname(found);
  if (path == nullptr) return invalid("an entry has no name");
  entry.path = path;
  entry.type = type_of(found);
  const char* target = entry.type == ArchiveEntry::Type::kHardLink ? archive_entry_hardlink(found)
                                                                   : archive_entry_symlink(found);
  if (target != nullptr) entry.target = target;
  if (entry.path.size() >= PATH_MAX || entry.target.size() >= PATH_MAX)
    return invalid("the name of an entry has more than 4095 bytes");
  entry.mode = static_cast<uint32_t>(archive_entry_perm(found));
  entry.uid = archive_entry_uid(found);
  entry.gid = archive_entry_gid(found);
  if (archive_entry_mtime_is_set(found)) entry.modified = archive_entry_mtime(found);
  int64_t size = entry.type == ArchiveEntry::Type::kFile ? archive_entry_size(found) : 0;
  if (size < 0) return invalid(entry.path + ": has a negative size");
  entry.size = static_cast<uint64_t>(size);
  if (entry.size > kMaxUnpackedBytes) return invalid(entry.path + ": claims more than 32 GiB");
  entry_bytes_ = entry.size;
  return std::optional(std::move(entry));
}

Result<void> ArchiveFile::charge(uint64_t bytes) {
  unpacked_bytes_ += bytes;
  if (unpacked_bytes_ > std::max(kRatioFloorBytes, source_->packed_bytes * kMaxRatio))
    return invalid("the archive unpacks to more than 1000 times its size");
  if (bytes > budget_.bytes) return invalid("the image unpacks to more than 32 GiB");
  budget_.bytes -= bytes;
  return {};
}

Result<void> ArchiveFile::read(const Take& take) {
  uint64_t left = entry_bytes_;
  while (true) {
    const void* data = nullptr;
    size_t size = 0;
    int64_t offset = 0;
    int result = archive_read_data_block(reader_.get(), &data, &size, &offset);
    if (result == ARCHIVE_EOF) return {};
    if (result != ARCHIVE_OK) return failure();
    auto start = static_cast<uint64_t>(offset);
    if (offset < 0 || size > left || start > entry_bytes_ - size)
      return invalid("an entry has more bytes than its size");
    left -= size;
    ATOLL_TRY_VOID(charge(size));
    ATOLL_TRY_VOID(take({static_cast<const char*>(data), size}, start));
  }
}

}  // namespace atl::builder
