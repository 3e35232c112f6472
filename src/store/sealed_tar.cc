#include "store/sealed_tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "store/sha256.h"

namespace atl::store {

namespace {

constexpr uint32_t kSkippableFrame = 0x184d2a5a;  // any of 0x184d2a50 to 5f
constexpr std::string_view kSealTitle = "atoll seal 1 sha256 ";
constexpr size_t kSealTextBytes = kSealTitle.size() + 2 * Digest::kBytes + 1;
constexpr size_t kSealBytes = 8 + kSealTextBytes;
constexpr size_t kStepBytes = 256 * 1024;

std::string seal_of(const Digest& digest) {
  std::string seal;
  ByteWriter writer(seal);
  writer.u32(kSkippableFrame);
  writer.u32(kSealTextBytes);
  writer.bytes(kSealTitle);
  writer.bytes(digest.string());
  writer.bytes("\n");
  return seal;
}

Error broken(const char* how) { return Error(Code::kCorrupt, how); }

// Exactly so many bytes, or an error: a file that shrinks meanwhile is not whole.
Result<void> read_at(int fd, char* into, size_t size, off_t offset) {
  while (size > 0) {
    ssize_t count = pread(fd, into, size, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::system("read");
    if (count == 0) return broken("it became shorter while it was read");
    into += count;
    offset += count;
    size -= static_cast<size_t>(count);
  }
  return {};
}

}  // namespace

struct SealedTarWriter::Target {
  int fd = -1;
  Sha256 digest;
  int system_errno = 0;
  bool given_up = false;  // what is not finished is not to be completed

  static la_ssize_t write(archive*, void* data, const void* bytes, size_t size) {
    auto* self = static_cast<Target*>(data);
    if (self->given_up) return -1;
    std::string_view text(static_cast<const char*>(bytes), size);
    auto written = write_all(self->fd, text);
    if (!written) {
      self->system_errno = written.error().system_errno();
      return -1;
    }
    self->digest.update(text);
    return static_cast<la_ssize_t>(size);
  }
};

// Not archive_write_fail() before it: then libarchive 3.6 does not free what it opened.
void SealedTarWriter::Free::operator()(archive* writer) const { archive_write_free(writer); }

SealedTarWriter::SealedTarWriter(std::unique_ptr<Target> target,
                                 std::unique_ptr<archive, Free> writer)
    : target_(std::move(target)), writer_(std::move(writer)) {}

SealedTarWriter::SealedTarWriter(SealedTarWriter&&) noexcept = default;
SealedTarWriter& SealedTarWriter::operator=(SealedTarWriter&& other) noexcept {
  if (target_) target_->given_up = true;
  writer_ = std::move(other.writer_);
  target_ = std::move(other.target_);
  return *this;
}
SealedTarWriter::~SealedTarWriter() {
  if (target_) target_->given_up = true;
}

Error SealedTarWriter::failure(std::string_view operation) const {
  if (target_->system_errno != 0) return Error::from_errno(operation, target_->system_errno);
  const char* text = archive_error_string(writer_.get());
  return Error(Code::kSystem,
               std::string(operation) + ": " + std::string(text ? text : "no reason given"));
}

Result<SealedTarWriter> SealedTarWriter::open(int fd) {
  auto target = std::make_unique<Target>();
  target->fd = fd;
  std::unique_ptr<archive, Free> writer(archive_write_new());
  ATOLL_CHECK(writer != nullptr);
  // ARCHIVE_WARN would mean that it starts a program to compress.
  bool supported = archive_write_add_filter_zstd(writer.get()) == ARCHIVE_OK &&
                   archive_write_set_format_pax_restricted(writer.get()) == ARCHIVE_OK &&
                   archive_write_set_bytes_in_last_block(writer.get(), 1) == ARCHIVE_OK;
  if (!supported) return Error(Code::kUnsupported, "libarchive has no zstd or tar built in");
  Target* borrowed = target.get();
  SealedTarWriter made(std::move(target), std::move(writer));
  if (archive_write_open(made.writer_.get(), borrowed, nullptr, Target::write, nullptr) !=
      ARCHIVE_OK)
    return made.failure("begin an archive");
  return made;
}

Result<void> SealedTarWriter::begin(const TarEntry& entry) {
  bool is_file = entry.type == TarEntry::Type::kFile;
  ATOLL_CHECK(is_file || entry.type == TarEntry::Type::kDirectory);
  std::unique_ptr<archive_entry, void (*)(archive_entry*)> made(archive_entry_new(),
                                                                archive_entry_free);
  ATOLL_CHECK(made != nullptr);
  archive_entry_set_pathname(made.get(), entry.path.c_str());
  archive_entry_set_filetype(made.get(), is_file ? AE_IFREG : AE_IFDIR);
  archive_entry_set_perm(made.get(), static_cast<mode_t>(entry.mode));
  archive_entry_set_size(made.get(), static_cast<la_int64_t>(entry.size));
  archive_entry_set_mtime(made.get(), entry.modified_ns / 1'000'000'000, 0);
  // A warning is a name or field that was changed or left out.
  if (archive_write_header(writer_.get(), made.get()) != ARCHIVE_OK)
    return failure("write the header of " + entry.path);
  return {};
}

Result<void> SealedTarWriter::append(std::string_view bytes) {
  la_ssize_t count = archive_write_data(writer_.get(), bytes.data(), bytes.size());
  if (count < 0) return failure("write");
  // libarchive drops what is beyond the size that the header has.
  if (static_cast<size_t>(count) != bytes.size())
    return Error(Code::kInvalid, "an entry has more bytes than its size");
  return {};
}

Result<void> SealedTarWriter::finish() {
  if (archive_write_close(writer_.get()) != ARCHIVE_OK) return failure("end an archive");
  return write_all(target_->fd, seal_of(target_->digest.finish()));
}

Result<void> check_seal(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return Error::system("stat");
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalid, "it is not a regular file");
  if (status.st_size < static_cast<off_t>(kSealBytes)) return broken("it was cut short");
  off_t end = status.st_size - static_cast<off_t>(kSealBytes);
  std::string seal(kSealBytes, '\0');
  ATOLL_TRY_VOID(read_at(fd, seal.data(), seal.size(), end));
  Sha256 digest;
  std::vector<char> piece(kStepBytes);
  for (off_t offset = 0; offset < end;) {
    size_t size = std::min(piece.size(), static_cast<size_t>(end - offset));
    ATOLL_TRY_VOID(read_at(fd, piece.data(), size, offset));
    digest.update({piece.data(), size});
    offset += static_cast<off_t>(size);
  }
  if (seal != seal_of(digest.finish()))
    return broken("its end is not the seal of what stands before: it was cut short or changed");
  return {};
}

}  // namespace atl::store
