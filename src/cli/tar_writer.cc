#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/file.h"
#include "cli/tar.h"

namespace atl::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kNameBytes = 100;
constexpr uint64_t kMaxOctalSize = (1ull << 33) - 1;

struct Entry {
  char type;
  std::string name;
  std::string link;
  unsigned mode;
  uint64_t size;
  int64_t modified;
};

void put_octal(std::string& block, size_t at, size_t width, uint64_t value) {
  std::string digits = fmt::format("{:0{}o}", value, width - 1);
  block.replace(at, digits.size(), digits);
}

void put_text(std::string& block, size_t at, const std::string& text) {
  block.replace(at, std::min(text.size(), kNameBytes), text, 0, kNameBytes);
}

// The fields of POSIX ustar, at their places.
std::string header_block(const Entry& entry) {
  std::string block(kBlock, '\0');
  put_text(block, 0, entry.name);
  put_octal(block, 100, 8, entry.mode & 0777);
  put_octal(block, 108, 8, 0);
  put_octal(block, 116, 8, 0);
  put_octal(block, 124, 12, std::min(entry.size, kMaxOctalSize));
  put_octal(block, 136, 12, static_cast<uint64_t>(std::max<int64_t>(entry.modified, 0)));
  block[156] = entry.type;
  put_text(block, 157, entry.link);
  block.replace(257, 8,
                std::string("ustar\0"
                            "00",
                            8));
  // The sum is made with its own field as blanks.
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

// "LENGTH NAME=VALUE\n", where the length counts its own digits.
std::string record(const std::string& name, const std::string& value) {
  std::string rest = " " + name + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length)
    length = std::to_string(length).size() + rest.size();
  return std::to_string(length) + rest;
}

std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return bytes;
}

std::string headers_of(const Entry& entry) {
  std::string records;
  if (entry.name.size() > kNameBytes) records += record("path", entry.name);
  if (entry.link.size() > kNameBytes) records += record("linkpath", entry.link);
  if (entry.size > kMaxOctalSize) records += record("size", std::to_string(entry.size));
  if (records.empty()) return header_block(entry);
  Entry extended{'x', "pax", "", 0644, records.size(), 0};
  return header_block(extended) + padded(records) + header_block(entry);
}

Result<std::string> link_target(const std::string& path) {
  std::error_code error;
  std::string target = std::filesystem::read_symlink(path, error).string();
  if (error) return Error::from_errno("read link " + path, error.value());
  return target;
}

}  // namespace

Result<TarWriter> TarWriter::open(const std::string& directory) {
  TarWriter writer(directory);
  std::error_code error;
  writer.at_ = std::filesystem::recursive_directory_iterator(directory, error);
  if (error) return Error::from_errno("read directory " + directory, error.value());
  return writer;
}

Result<size_t> TarWriter::read(std::span<char> piece) {
  while (pending_sent_ == pending_.size() && file_left_ == 0 && !is_ended_) ATOLL_TRY_VOID(next());
  if (pending_sent_ < pending_.size()) {
    size_t count = std::min(piece.size(), pending_.size() - pending_sent_);
    memcpy(piece.data(), pending_.data() + pending_sent_, count);
    pending_sent_ += count;
    return count;
  }
  if (file_left_ == 0) return size_t{0};
  size_t wanted = std::min<uint64_t>(piece.size(), file_left_);
  ssize_t count = ::read(file_.get(), piece.data(), wanted);
  if (count < 0) return Error::system("read " + file_name_);
  if (count == 0) return Error(Code::kConflict, file_name_ + " became shorter meanwhile");
  file_left_ -= static_cast<uint64_t>(count);
  return static_cast<size_t>(count);
}

// Puts the next headers, the padding of the last file, or the end of the archive into `pending_`.
Result<void> TarWriter::next() {
  pending_.clear();
  pending_sent_ = 0;
  if (file_) {
    struct stat facts;
    if (fstat(file_.get(), &facts) != 0) return Error::system("stat " + file_name_);
    off_t end = lseek(file_.get(), 0, SEEK_CUR);
    pending_.assign((kBlock - static_cast<uint64_t>(end) % kBlock) % kBlock, '\0');
    file_.reset();
    return {};
  }
  if (at_ == std::filesystem::recursive_directory_iterator()) {
    pending_.assign(2 * kBlock, '\0');
    is_ended_ = true;
    return {};
  }
  ATOLL_TRY_VOID(add(*at_));
  std::error_code error;
  at_.increment(error);
  if (error) return Error::from_errno("read directory " + directory_, error.value());
  return {};
}

Result<void> TarWriter::add(const std::filesystem::directory_entry& entry) {
  const std::string& path = entry.path().native();
  Entry made{'0', path.substr(directory_.size()), "", 0, 0, 0};
  made.name.erase(0, made.name.find_first_not_of('/'));
  struct stat facts;
  if (lstat(path.c_str(), &facts) != 0) return Error::system("stat " + path);
  if (S_ISREG(facts.st_mode)) {
    ATOLL_TRY(file_, open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (fstat(file_.get(), &facts) != 0) return Error::system("stat " + path);
    if (!S_ISREG(facts.st_mode)) return Error(Code::kConflict, path + " is no file any more");
    made.size = static_cast<uint64_t>(facts.st_size);
    file_left_ = made.size;
    file_name_ = path;
  } else if (S_ISDIR(facts.st_mode)) {
    made.type = '5';
    made.name += '/';
  } else if (S_ISLNK(facts.st_mode)) {
    made.type = '2';
    ATOLL_TRY(made.link, link_target(path));
  } else {
    return {};
  }
  made.mode = facts.st_mode;
  made.modified = facts.st_mtim.tv_sec;
  pending_ = headers_of(made);
  return {};
}

}  // namespace atl::cli
