#include "egress/audit_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/file.h"
#include "store/sha256.h"

namespace atl::egress {
namespace {

constexpr std::string_view kChainKey = ",\"chain\":\"";
constexpr size_t kHashBytes = 32;
constexpr size_t kTailBytes = 2 * kHashBytes + 2;  // hash, quote, brace
constexpr size_t kReadBytes = 256 * 1024;
constexpr uint64_t kMaxReadBytes = kMaxAuditBytes + (1 << 20);

std::string hash(std::string_view first, std::string_view second) {
  store::Sha256 sum;
  sum.update(first);
  sum.update(second);
  return sum.finish().string();
}

std::string first_link(const SandboxId& id) { return hash("atoll audit ", id.view()); }

std::string file_name(const SandboxId& id) { return id.string() + ".audit"; }

struct Line {
  std::string_view body;  // without the chain
  std::string_view chain;
};

Result<Line> split(std::string_view line) {
  if (line.size() < kChainKey.size() + kTailBytes || !line.ends_with("\"}"))
    return Error(Code::kCorrupt, "a row without a chain");
  Line parts{line.substr(0, line.size() - kTailBytes - kChainKey.size()),
             line.substr(line.size() - kTailBytes, 2 * kHashBytes)};
  if (line.substr(parts.body.size(), kChainKey.size()) != kChainKey)
    return Error(Code::kCorrupt, "a row without a chain");
  return parts;
}

Result<std::string> read_at(int file, uint64_t from, size_t most) {
  std::string bytes(most, '\0');
  ssize_t count = pread(file, bytes.data(), most, static_cast<off_t>(from));
  if (count < 0) return Error::system("read an audit log");
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

}  // namespace

Result<AuditFile> AuditFile::open(int directory, SandboxId id) {
  AuditFile file(directory, id);
  file.chain_ = first_link(id);
  auto existing = open_at(directory, file_name(id), O_RDWR | O_APPEND | O_NOFOLLOW);
  if (!existing && existing.error().system_errno() == ENOENT) return file;
  if (!existing) return std::move(existing).error();
  file.file_ = std::move(*existing);
  ATOLL_TRY_VOID(file.recover());
  return file;
}

Result<void> AuditFile::recover() {
  ATOLL_TRY(std::string text, read_all(file_.get(), kMaxReadBytes));
  size_t end = text.rfind('\n');
  end = end == text.npos ? 0 : end + 1;
  if (end != text.size() && ftruncate(file_.get(), static_cast<off_t>(end)) != 0)
    return Error::system("cut off half a row");
  text.resize(end);
  bytes_ = end;
  ATOLL_TRY(rows_, verify_audit(text, id_));
  if (rows_ == 0) return {};
  size_t start = text.rfind('\n', text.size() - 2);
  start = start == text.npos ? 0 : start + 1;
  ATOLL_TRY(Line last, split(std::string_view(text).substr(start, text.size() - 1 - start)));
  chain_ = last.chain;
  return {};
}

Result<void> AuditFile::append(uint64_t tenant, const AuditRow& row, WallTime time) {
  if (is_full()) return Error(Code::kExhausted, "the audit log is full").with_reason("audit_full");
  if (!file_) {
    int flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW;
    ATOLL_TRY(file_, open_at(directory_, file_name(id_), flags, 0600));
  }
  std::string line = fmt::format("{{\"n\":{},\"sandbox\":\"{}\",\"tenant\":{},{}", rows_ + 1,
                                 id_.view(), tenant, format_members(row, time));
  std::string chain = hash(chain_, line);
  line += fmt::format("{}{}\"}}\n", kChainKey, chain);
  ATOLL_TRY_VOID(write_all(file_.get(), line));
  bytes_ += line.size();
  ++rows_;
  chain_ = std::move(chain);
  return {};
}

Result<AuditPage> AuditFile::read(int directory, SandboxId id, uint64_t from, size_t most_bytes) {
  AuditPage page{.lines = {}, .next = from};
  auto file = open_at(directory, file_name(id), O_RDONLY | O_NOFOLLOW);
  if (!file && file.error().system_errno() == ENOENT) return page;
  if (!file) return std::move(file).error();
  ATOLL_TRY(std::string text, read_at(file->get(), from, std::min(most_bytes, kReadBytes)));
  // An offset in the middle of a row is none that we gave.
  if (from > 0) {
    ATOLL_TRY(std::string before, read_at(file->get(), from - 1, 1));
    if (before != "\n")
      return Error(Code::kInvalid, "no row begins there").with_reason("invalid_cursor");
  }
  size_t start = 0;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', start)) {
    page.lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  page.next = from + start;
  return page;
}

Result<void> AuditFile::remove(int directory, SandboxId id) {
  if (unlinkat(directory, file_name(id).c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("remove an audit log");
  return {};
}

Result<void> AuditFile::sweep(int directory, uint64_t most_bytes,
                              const std::function<bool(const SandboxId&)>& is_open) {
  ATOLL_TRY(Fd opened, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* entries = fdopendir(opened.get());
  if (entries == nullptr) return Error::system("list the audit logs");
  (void)opened.release();  // closedir() closes it
  uint64_t total = 0;
  std::multimap<time_t, std::pair<SandboxId, uint64_t>> removable;
  while (const dirent* entry = readdir(entries)) {
    std::string_view name = entry->d_name;
    auto id = SandboxId::parse(name.substr(0, SandboxId::kLength));
    struct stat status;
    if (!id || name != file_name(*id) ||
        fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    auto bytes = static_cast<uint64_t>(status.st_size);
    total += bytes;
    if (!is_open(*id)) removable.emplace(status.st_mtime, std::pair(*id, bytes));
  }
  closedir(entries);
  for (const auto& [time, log] : removable) {
    if (total <= most_bytes) break;
    ATOLL_TRY_VOID(remove(directory, log.first));
    total -= log.second;
  }
  return {};
}

Result<uint64_t> verify_audit(std::string_view text, const SandboxId& id) {
  std::string chain = first_link(id);
  uint64_t rows = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == text.npos) return Error(Code::kCorrupt, "the last row has no end");
    auto line = split(text.substr(0, end));
    std::string where = "row " + std::to_string(rows + 1);
    if (!line) return std::move(line).error().with_context(where);
    std::string begin = fmt::format("{{\"n\":{},", rows + 1);
    chain = hash(chain, line->body);
    if (chain != line->chain || !line->body.starts_with(begin))
      return Error(Code::kCorrupt, where + " was changed, or one before it is missing");
    text.remove_prefix(end + 1);
    ++rows;
  }
  return rows;
}

}  // namespace atl::egress
