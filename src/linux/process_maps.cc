#include "linux/process_maps.h"

#include <sys/mman.h>

#include <charconv>

namespace atl::linux {
namespace {

// Takes a hexadecimal number and the character behind it.
bool take_number(std::string_view& text, uint64_t& number, char behind) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  auto length = static_cast<size_t>(end - text.data());
  if (error != std::errc() || length >= text.size() || *end != behind) return false;
  text.remove_prefix(length + 1);
  return true;
}

bool take_word(std::string_view& text) {
  size_t blank = text.find(' ');
  if (blank == text.npos) return false;
  text.remove_prefix(blank + 1);
  return true;
}

bool parse_line(std::string_view line, MappedArea& area) {
  if (!take_number(line, area.start, '-') || !take_number(line, area.end, ' ')) return false;
  if (line.size() < 5) return false;
  area.protection = (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) |
                    (line[2] == 'x' ? PROT_EXEC : 0);
  area.shared = line[3] == 's';
  line.remove_prefix(5);
  if (!take_number(line, area.offset, ' ')) return false;
  for (int word = 0; word < 2; ++word)  // the device and the inode
    if (!take_word(line)) return false;
  size_t name = line.find_first_not_of(' ');
  if (name != line.npos) area.name = line.substr(name);
  return area.start < area.end;
}

}  // namespace

Result<std::vector<MappedArea>> parse_maps(std::string_view text) {
  std::vector<MappedArea> areas;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    MappedArea area = {};
    if (!parse_line(line, area))
      return Error(Code::kCorrupt, "cannot read the map: " + std::string(line));
    areas.push_back(std::move(area));
  }
  return areas;
}

}  // namespace atl::linux
