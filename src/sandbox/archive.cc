#include "sandbox/archive.h"

#include <stdlib.h>
#include <unistd.h>

#include <set>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/file.h"
#include "store/tar_writer.h"

namespace atl::sandbox {

using store::TarEntry;
using store::TarReader;

namespace {

constexpr size_t kStepBytes = 64 * 1024;
constexpr size_t kYieldBytes = 1024 * 1024;  // unpacked between two looks at other work
constexpr size_t kYieldEntries = 256;
constexpr size_t kMaxNamesBytes = 64 * 1024 * 1024;  // of all entries together

Error refused(std::string_view path, std::string_view why) {
  return Error(Code::kInvalid, "entry " + shown(path) + " " + std::string(why))
      .with_reason("archive_entry_refused");
}

// "./a/" is a; the root itself is nothing.
std::string plain_name(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path == "." ? "" : path);
}

bool is_left_out(const TarEntry& entry) {
  return entry.type == TarEntry::Type::kOther || plain_name(entry.path).empty();
}

// What an archive may name, entry by entry.
class NameCheck {
 public:
  Result<void> add(const TarEntry& entry) {
    std::string name = plain_name(entry.path);
    if (!is_clean_relative(name))
      return refused(entry.path, "is absolute or has an empty, `..` or over-long part");
    bytes_ += name.size();
    if (bytes_ > kMaxNamesBytes)
      return Error(Code::kExhausted, "the names of the archive have more than 64 MiB")
          .with_reason("archive_too_large");
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
      if (links_.contains(name.substr(0, slash)))
        return refused(entry.path, "lies beneath a link of the same archive");
    links_.erase(name);
    if (entry.type == TarEntry::Type::kHardLink && !files_.contains(plain_name(entry.target)))
      return refused(entry.path, "is a hard link to no earlier file of the archive");
    if (entry.type == TarEntry::Type::kSymlink && entry.target.empty())
      return refused(entry.path, "is a link to nothing");
    if (entry.type == TarEntry::Type::kSymlink) links_.insert(name);
    bool is_file = entry.type == TarEntry::Type::kFile || entry.type == TarEntry::Type::kHardLink;
    if (is_file) files_.insert(name);
    if (!is_file) files_.erase(name);
    return {};
  }

 private:
  std::set<std::string> links_;
  std::set<std::string> files_;
  size_t bytes_ = 0;
};

FileEntry to_entry(const TarEntry& tar) {
  FileEntry entry;
  entry.path = plain_name(tar.path);
  entry.mode = tar.mode;
  entry.size = tar.size;
  entry.modified_ns = tar.modified_ns;
  if (tar.type == TarEntry::Type::kDirectory) entry.type = agent::EntryType::kDirectory;
  if (tar.type == TarEntry::Type::kSymlink) entry.type = agent::EntryType::kSymlink;
  if (tar.type == TarEntry::Type::kSymlink) entry.target = tar.target;
  if (tar.type == TarEntry::Type::kHardLink) entry.hard_link = plain_name(tar.target);
  return entry;
}

Task<void> let_others_work() {
  auto executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

}  // namespace

TarEntry to_tar_entry(const FileEntry& entry) {
  TarEntry tar{.path = entry.path,
               .mode = entry.mode & 0777,
               .uid = entry.uid,
               .gid = entry.gid,
               .size = entry.size,
               .modified_ns = entry.modified_ns,
               .target = entry.target};
  if (entry.type == agent::EntryType::kDirectory) tar.type = TarEntry::Type::kDirectory;
  if (entry.type == agent::EntryType::kSymlink) tar.type = TarEntry::Type::kSymlink;
  if (!entry.hard_link.empty()) tar.type = TarEntry::Type::kHardLink;
  if (!entry.hard_link.empty()) tar.target = entry.hard_link;
  return tar;
}

Result<ArchiveUpload> ArchiveUpload::create(const std::string& directory) {
  std::string name = directory + "/archive-XXXXXX";
  Fd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) return Error::system("make a file for an archive");
  if (unlink(name.c_str()) != 0) return Error::system("unlink the file of an archive");
  return ArchiveUpload(std::move(file));
}

Result<void> ArchiveUpload::append(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > kMaxArchiveUploadBytes)
    return Error(Code::kInvalid, "the archive is over 4 GiB").with_reason("archive_too_large");
  auto written = write_all(file_.get(), bytes);
  if (!written && written.error().code() == Code::kExhausted)
    return std::move(written).error().with_reason("disk_full");
  return written;
}

Task<Result<void>> ArchiveUpload::check() {
  ATOLL_CO_TRY(TarReader reader, TarReader::open(file_.get()));
  NameCheck names;
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  size_t since_yield = 0;
  for (size_t entries = 1;; ++entries) {
    ATOLL_CO_TRY(std::optional<TarEntry> entry, reader.next());
    if (!entry) co_return Result<void>();
    if (!is_left_out(*entry)) ATOLL_CO_TRY_VOID(names.add(*entry));
    size_t count = 1;
    while (count > 0) {
      auto read = reader.read(room);
      if (!read) co_return std::move(read).error().with_context("entry " + shown(entry->path));
      count = *read;
      since_yield += count;
      if (since_yield < kYieldBytes && entries % kYieldEntries != 0) continue;
      since_yield = 0;
      co_await let_others_work();
    }
  }
}

Task<Result<Unpacked>> ArchiveUpload::unpack(Files& files, std::string path, Edit edit) {
  ATOLL_CO_TRY_VOID(co_await check());
  ATOLL_CO_TRY(TarReader reader, TarReader::open(file_.get()));
  ATOLL_CO_TRY(std::unique_ptr<TreeWriter> tree, co_await files.unpack(std::move(path)));
  std::string buffer(kStepBytes, '\0');
  std::span<char> room(buffer);
  Unpacked done;
  Result<void> sent;
  while (sent) {
    ATOLL_CO_TRY(std::optional<TarEntry> entry, reader.next());
    if (!entry) break;
    bool sends = !is_left_out(*entry) && (!edit || edit(*entry));
    FileEntry told = to_entry(*entry);
    if (sends) sent = co_await tree->add(std::move(told));
    size_t count = 1;
    while (sent && count > 0) {
      ATOLL_CO_TRY(count, reader.read(room));
      std::string_view bytes(buffer.data(), count);
      if (count > 0 && sends) sent = co_await tree->write(bytes);
      done.bytes += sends ? count : 0;
    }
    done.entries += sends && sent ? 1 : 0;
  }
  if (sent) sent = co_await tree->finish();
  if (!sent)
    co_return std::move(sent).error().with_context(
        "unpack (at most " + std::to_string(done.entries) + " entries were written before)");
  co_return done;
}

Task<Result<std::string>> ArchiveDownload::next() {
  if (ended_) co_return std::string();
  if (left_ > 0) {
    ATOLL_CO_TRY(std::string_view bytes, co_await tree_->next_bytes());
    left_ -= bytes.size();
    std::string piece(bytes);
    if (left_ == 0) piece += std::exchange(follows_, "");
    co_return piece;
  }
  ATOLL_CO_TRY(std::optional<FileEntry> entry, co_await tree_->next_entry());
  if (!entry) {
    ended_ = true;
    co_return store::tar_end();
  }
  left_ = entry->size;
  follows_ = store::tar_padding(entry->size);
  co_return store::tar_header(to_tar_entry(*entry));
}

}  // namespace atl::sandbox
