#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "cli/tar.h"

namespace atl::cli {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaxRecordBytes = 1024 * 1024;
constexpr uint64_t kMaxFileBytes = 1ull << 50;

Error malformed(const char* what) {
  return Error(Code::kCorrupt, "the archive is malformed: " + std::string(what));
}

std::string text_at(std::string_view block, size_t at, size_t width) {
  std::string_view field = block.substr(at, width);
  return std::string(field.substr(0, field.find('\0')));
}

Result<uint64_t> octal_at(std::string_view block, size_t at, size_t width) {
  std::string_view field = block.substr(at, width);
  field = field.substr(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  if (field.empty()) return uint64_t{0};
  uint64_t value = 0;
  auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc() || end != field.data() + field.size()) return malformed("a number");
  return value;
}

unsigned sum_of(std::string_view block) {
  unsigned sum = 0;
  for (size_t i = 0; i < block.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  return sum;
}

// GNU tar puts names over 100 bytes in front like pax does, as the content of these.
constexpr char kGnuLongName = 'L';
constexpr char kGnuLongLink = 'K';
constexpr char kPaxRecords = 'x';

bool is_preamble(char type) {
  return type == kPaxRecords || type == kGnuLongName || type == kGnuLongLink;
}

}  // namespace

Result<void> TarReader::feed(std::string_view bytes) {
  while (!bytes.empty() && !is_ended_) {
    if (content_left_ > 0) {
      std::string_view part = bytes.substr(0, std::min<uint64_t>(bytes.size(), content_left_));
      ATOLL_TRY_VOID(take_content(part));
      bytes.remove_prefix(part.size());
      continue;
    }
    if (padding_left_ > 0) {
      size_t count = std::min<uint64_t>(bytes.size(), padding_left_);
      padding_left_ -= count;
      bytes.remove_prefix(count);
      continue;
    }
    size_t count = std::min(bytes.size(), kBlock - block_.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < kBlock) return {};
    ATOLL_TRY_VOID(take_header());
    block_.clear();
  }
  return {};
}

Result<void> TarReader::take_header() {
  if (block_.find_first_not_of('\0') == block_.npos) {
    is_ended_ = true;
    return {};
  }
  ATOLL_TRY(uint64_t sum, octal_at(block_, 148, 8));
  if (sum != sum_of(block_)) return malformed("the sum of a header");
  Header header;
  header.type = block_[156] == '\0' ? '0' : block_[156];
  ATOLL_TRY(uint64_t mode, octal_at(block_, 100, 8));
  header.mode = static_cast<unsigned>(mode);
  // A size in base 256 or in a record is larger than octal digits can say.
  if ((static_cast<unsigned char>(block_[124]) & 0x80) == 0) {
    ATOLL_TRY(header.size, octal_at(block_, 124, 12));
  } else {
    for (size_t i = 128; i < 136; ++i)
      header.size = header.size << 8 | static_cast<unsigned char>(block_[i]);
  }
  header.name = text_at(block_, 0, 100);
  header.link = text_at(block_, 157, 100);
  std::string prefix = text_at(block_, 345, 155);
  if (block_.substr(257, 6) == std::string("ustar\0", 6) && !prefix.empty())
    header.name = prefix + "/" + header.name;
  return start_entry(std::move(header));
}

Result<void> TarReader::start_entry(Header header) {
  bool is_record = is_preamble(header.type);
  if (!is_record) {
    if (next_name_) header.name = std::move(*next_name_);
    if (next_link_) header.link = std::move(*next_link_);
    if (next_size_) header.size = *next_size_;
    next_name_.reset();
    next_link_.reset();
    next_size_.reset();
  }
  // Only files have content; what other entries claim would be read as headers by other readers.
  if (header.type == '5' || header.type == '2') header.size = 0;
  if (header.size > kMaxFileBytes) return malformed("a size");
  if (is_record && header.size > kMaxRecordBytes) return malformed("a long record");
  content_left_ = header.size;
  padding_left_ = (kBlock - header.size % kBlock) % kBlock;
  current_ = std::move(header);
  records_.clear();
  if (current_.type == '0' || current_.type == '7') {
    ATOLL_TRY(file_, tree_.create_file(current_.name, current_.mode));
    ++files_;
  } else if (current_.type == '5') {
    ATOLL_TRY_VOID(tree_.make_directory(current_.name));
  } else if (current_.type == '2') {
    auto made = tree_.make_link(current_.name, current_.link);
    if (!made && made.error().code() != Code::kDenied) return made;
    if (!made) ++skipped_;
  } else if (!is_record && current_.type != 'g') {
    ++skipped_;
  }
  return content_left_ == 0 ? end_entry() : Result<void>();
}

Result<void> TarReader::take_content(std::string_view bytes) {
  if (is_preamble(current_.type)) records_ += bytes;
  if (file_) ATOLL_TRY_VOID(write_all(file_.get(), bytes));
  content_left_ -= bytes.size();
  return content_left_ == 0 ? end_entry() : Result<void>();
}

Result<void> TarReader::end_entry() {
  file_.reset();
  std::string name = records_.substr(0, records_.find('\0'));
  if (current_.type == kGnuLongName) next_name_ = name;
  if (current_.type == kGnuLongLink) next_link_ = name;
  return current_.type == kPaxRecords ? take_records() : Result<void>();
}

Result<void> TarReader::take_records() {
  std::string_view left = records_;
  while (!left.empty()) {
    size_t length = 0;
    auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), length);
    size_t digits = static_cast<size_t>(end - left.data());
    if (error != std::errc() || length > left.size() || length < digits + 3 ||
        left[digits] != ' ' || left[length - 1] != '\n')
      return malformed("a record");
    std::string_view pair = left.substr(digits + 1, length - digits - 2);
    left.remove_prefix(length);
    size_t equals = pair.find('=');
    if (equals == pair.npos) return malformed("a record");
    std::string_view name = pair.substr(0, equals);
    std::string value(pair.substr(equals + 1));
    if (name == "path") next_name_ = value;
    if (name == "linkpath") next_link_ = value;
    if (name != "size") continue;
    uint64_t size = 0;
    auto [last, bad] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (bad != std::errc() || last != value.data() + value.size()) return malformed("a size");
    next_size_ = size;
  }
  return {};
}

Result<void> TarReader::finish() {
  if (!is_ended_) return malformed("it ends too early");
  return {};
}

}  // namespace atl::cli
