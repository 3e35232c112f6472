#include "store/tar_writer.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/utf8.h"

namespace atl::store {

namespace {

constexpr size_t kBlockBytes = 512;
constexpr size_t kMaxNameBytes = 100;
constexpr uint64_t kMaxOctalSize = 077777777777;

// Offsets of POSIX.1-1988.
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], time[12], checksum[8], type;
  char target[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
  char prefix[155], padding[12];
};
static_assert(sizeof(Header) == kBlockBytes);

template <size_t kBytes>
void put_octal(char (&field)[kBytes], uint64_t value) {
  std::string text = fmt::format("{:0{}o}", value, kBytes - 1);
  if (text.size() < kBytes) std::memcpy(field, text.data(), text.size());
}

template <size_t kBytes>
void put_text(char (&field)[kBytes], const std::string& text) {
  std::memcpy(field, text.data(), std::min(text.size(), kBytes));
}

char type_flag(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::kHardLink:
      return '1';
    case TarEntry::Type::kSymlink:
      return '2';
    case TarEntry::Type::kDirectory:
      return '5';
    case TarEntry::Type::kFile:
    case TarEntry::Type::kOther:
      break;
  }
  return '0';
}

std::string block(const TarEntry& entry, char type) {
  Header header = {};
  put_text(header.name, entry.path);
  put_octal(header.mode, entry.mode);
  put_octal(header.uid, std::min<uint32_t>(entry.uid, 07777777));
  put_octal(header.gid, std::min<uint32_t>(entry.gid, 07777777));
  put_octal(header.size, std::min(entry.size, kMaxOctalSize));
  int64_t seconds = std::clamp<int64_t>(entry.modified_ns / 1'000'000'000, 0, 077777777777);
  put_octal(header.time, static_cast<uint64_t>(seconds));
  std::memset(header.checksum, ' ', sizeof header.checksum);
  header.type = type;
  put_text(header.target, entry.target);
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  unsigned sum = 0;
  for (unsigned char byte : text) sum += byte;
  fmt::format_to(text.data() + offsetof(Header, checksum), "{:06o}", sum);
  text[offsetof(Header, checksum) + 6] = '\0';
  return text;
}

// "<length> <key>=<value>\n", where the length counts itself.
std::string record(std::string_view key, std::string_view value) {
  size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (rest + std::to_string(length).size() != length)
    length = rest + std::to_string(length).size();
  return fmt::format("{} {}={}\n", length, key, value);
}

bool is_plain(std::string_view text) {
  auto is_ascii = [](unsigned char c) { return c < 0x80; };
  return text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), is_ascii);
}

std::string records_of(const TarEntry& entry) {
  std::string records;
  if (!is_utf8(entry.path) || !is_utf8(entry.target)) records += record("hdrcharset", "BINARY");
  if (!is_plain(entry.path)) records += record("path", entry.path);
  if (!is_plain(entry.target)) records += record("linkpath", entry.target);
  if (entry.size > kMaxOctalSize) records += record("size", std::to_string(entry.size));
  int64_t fraction = entry.modified_ns % 1'000'000'000;
  if (entry.modified_ns > 0 && fraction != 0)
    records +=
        record("mtime", fmt::format("{}.{:09}", entry.modified_ns / 1'000'000'000, fraction));
  return records;
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
  std::string text;
  std::string records = records_of(entry);
  if (!records.empty()) {
    TarEntry extended;
    extended.path = "pax";
    extended.mode = 0644;
    extended.size = records.size();
    text = block(extended, 'x') + records + tar_padding(records.size());
  }
  TarEntry named = entry;
  if (named.type == TarEntry::Type::kDirectory) named.path += "/";
  return text + block(named, type_flag(entry.type));
}

std::string tar_padding(uint64_t size) {
  return std::string((kBlockBytes - size % kBlockBytes) % kBlockBytes, '\0');
}

std::string tar_end() { return std::string(2 * kBlockBytes, '\0'); }

}  // namespace atl::store
