#include "egress/audit_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "store/sha256.h"

namespace atl::egress {
namespace {

constexpr std::string_view kSuffix = ".audit";
constexpr std::string_view kChainKey = ",\"chain\":\"";
constexpr std::string_view kBeforeKey = ",\"before\":\"";
constexpr std::string_view kNumberKey = "{\"n\":";
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr size_t kHashDigits = 64;
constexpr size_t kTailBytes = kHashDigits + 2;  // hash, quote, brace

std::string hash(std::string_view first, std::string_view second) {
  store::Sha256 sum;
  sum.update(first);
  sum.update(second);
  return sum.finish().string();
}

Error corrupt(const std::string& what) { return Error(Code::kCorrupt, what); }

struct Line {
  std::string_view body;  // without the chain
  std::string_view chain;
};

Result<Line> split(std::string_view line) {
  if (line.size() < kChainKey.size() + kTailBytes || !line.ends_with("\"}"))
    return corrupt("a row without a chain");
  Line parts{line.substr(0, line.size() - kTailBytes - kChainKey.size()),
             line.substr(line.size() - kTailBytes, kHashDigits)};
  if (line.substr(parts.body.size(), kChainKey.size()) != kChainKey)
    return corrupt("a row without a chain");
  return parts;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc() && stop == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<SegmentFile> parse_name(std::string_view name) {
  auto id = SandboxId::parse(name.substr(0, SandboxId::kLength));
  if (!id) return std::nullopt;
  name.remove_prefix(SandboxId::kLength);
  if (!name.starts_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kSuffix.size());
  if (name.empty()) return SegmentFile{.id = *id, .number = 0, .bytes = 0, .changed_at_ns = 0};
  auto number = name[0] == '.' ? parse_number(name.substr(1)) : std::nullopt;
  if (!number || *number == 0) return std::nullopt;
  return SegmentFile{.id = *id, .number = *number, .bytes = 0, .changed_at_ns = 0};
}

}  // namespace

std::string segment_name(const SandboxId& id, uint64_t number) {
  std::string name = id.string() + std::string(kSuffix);
  return number == 0 ? name : name + "." + std::to_string(number);
}

Result<std::vector<SegmentFile>> list_segments(int directory) {
  ATOLL_TRY(Fd opened, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* entries = fdopendir(opened.get());
  if (entries == nullptr) return Error::system("list the audit logs");
  (void)opened.release();  // closedir() closes it
  std::vector<SegmentFile> found;
  while (const dirent* entry = readdir(entries)) {
    auto segment = parse_name(entry->d_name);
    struct stat status;
    if (!segment || fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    segment->bytes = static_cast<uint64_t>(status.st_size);
    segment->changed_at_ns = status.st_mtim.tv_sec * kNanosecondsPerSecond + status.st_mtim.tv_nsec;
    found.push_back(*segment);
  }
  closedir(entries);
  std::sort(found.begin(), found.end(), [](const SegmentFile& a, const SegmentFile& b) {
    return std::pair(a.id, a.number) < std::pair(b.id, b.number);
  });
  return found;
}

Result<std::map<uint64_t, uint64_t>> segments_of(int directory, const SandboxId& id) {
  std::map<uint64_t, uint64_t> found;
  struct stat status;
  auto is_there = [&](uint64_t number) {
    return fstatat(directory, segment_name(id, number).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  };
  if (!is_there(0)) return found;
  if (status.st_size == 0) {
    ATOLL_TRY(auto all, list_segments(directory));
    for (const SegmentFile& one : all)
      if (one.id == id && one.number > 0) found[one.number] = one.bytes;
    if (found.empty()) found[0] = 0;
    return found;
  }
  for (uint64_t number = 0; is_there(number); ++number)
    found[number] = static_cast<uint64_t>(status.st_size);
  return found;
}

Result<void> give_up_segment(int directory, const SandboxId& id, uint64_t number) {
  std::string name = segment_name(id, number);
  if (number == 0) {
    ATOLL_TRY([[maybe_unused]] Fd emptied,
              open_at(directory, name, O_WRONLY | O_TRUNC | O_NOFOLLOW));
    return {};
  }
  if (unlinkat(directory, name.c_str(), 0) != 0) return Error::system("remove " + name);
  return {};
}

AuditLink first_link(const SandboxId& id) {
  return {.rows = 0, .chain = hash("atoll audit ", id.view())};
}

std::string close_row(AuditLink& link, std::string body) {
  link = {.rows = link.rows + 1, .chain = hash(link.chain, body)};
  return fmt::format("{}{}{}\"}}\n", body, kChainKey, link.chain);
}

Result<AuditLink> link_before(std::string_view segment) {
  ATOLL_TRY(Line first, split(segment.substr(0, segment.find('\n'))));
  size_t before = first.body.find(kBeforeKey);
  bool is_numbered = first.body.starts_with(kNumberKey);
  if (before == first.body.npos || !is_numbered)
    return corrupt("a segment does not say what it goes on from");
  std::string_view digits = first.body.substr(kNumberKey.size());
  auto number = parse_number(digits.substr(0, digits.find(',')));
  std::string_view chain = first.body.substr(before + kBeforeKey.size(), kHashDigits);
  if (!number || *number == 0 || chain.size() != kHashDigits)
    return corrupt("a segment does not say what it goes on from");
  return AuditLink{.rows = *number - 1, .chain = std::string(chain)};
}

Result<AuditLink> verify_rows(std::string_view text, AuditLink link) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == text.npos) return corrupt("the last row has no end");
    auto line = split(text.substr(0, end));
    std::string where = "row " + std::to_string(link.rows + 1);
    if (!line) return std::move(line).error().with_context(where);
    std::string begin = fmt::format("{}{},", kNumberKey, link.rows + 1);
    link = {.rows = link.rows + 1, .chain = hash(link.chain, line->body)};
    if (link.chain != line->chain || !line->body.starts_with(begin))
      return corrupt(where + " was changed, or one before it is missing");
    text.remove_prefix(end + 1);
  }
  return link;
}

}  // namespace atl::egress
