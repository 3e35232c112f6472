#include "warden/uid_ranges.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <optional>

#include "base/file.h"

namespace atl::warden {
namespace {

constexpr const char* kRegistry = "/run/atoll-uid-ranges";
constexpr const char* kNote = "uid_range";

Result<Fd> open_registry(int lock) {
  ATOLL_TRY_VOID(make_directory(kRegistry, 0700));
  ATOLL_TRY(Fd registry, open_file(kRegistry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat status;
  if (fstat(registry.get(), &status) != 0) return Error::system("stat the uid registry");
  if (status.st_uid != 0 || (status.st_mode & 077) != 0)
    return Error::from_errno(std::string(kRegistry) + " must be root's alone", EPERM);
  while (flock(registry.get(), lock) != 0)
    if (errno != EINTR) return Error::system("lock the uid registry");
  return registry;
}

std::string owner_text(const Host& host, const SandboxId& id) {
  return host.run_dir + "\n" + id.string() + "\n";
}

std::optional<uint32_t> parse_range(std::string_view text) {
  uint32_t number = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number >= kUidRanges)
    return std::nullopt;
  return number;
}

// The note is written before the range is taken: a note of a range that is not ours is harmless,
// because freeing compares the owner; a range without a note would stay until the next start.
Result<bool> try_take(int registry, int entry, int record, uint32_t number) {
  std::string name = std::to_string(number);
  if (faccessat(registry, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return false;
  ATOLL_TRY(Fd note, open_at(record, kNote, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  ATOLL_TRY_VOID(write_all(note.get(), name));
  std::string source = "/proc/self/fd/" + std::to_string(entry);
  if (linkat(AT_FDCWD, source.c_str(), registry, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  if (errno == EEXIST) return false;
  return Error::system("take uid range " + name);
}

// An entry that cannot be read as ours is kept: better a lost range than a shared one.
bool is_stale(const Host& host, const std::string& owner) {
  size_t line = owner.find('\n');
  if (line == std::string::npos || owner.size() < line + 2 || owner.back() != '\n') return false;
  std::string run_dir = owner.substr(0, line);
  auto id = SandboxId::parse(std::string_view(owner).substr(line + 1, owner.size() - line - 2));
  if (!id || run_dir.empty() || run_dir.front() != '/') return false;
  std::string record = run_dir + "/isolates/" + id->string();
  if (access(record.c_str(), F_OK) == 0 || errno != ENOENT) return false;
  // Whoever deletes a run directory by hand does not stop the processes that use the range.
  std::string group = host.cgroups.v2 + "/atoll/" + run_tag(run_dir) + "/" + id->string();
  return access(group.c_str(), F_OK) != 0 && errno == ENOENT;
}

}  // namespace

Result<uid_t> take_uid_range(const Host& host, const SandboxId& id, int record) {
  ATOLL_TRY(Fd registry, open_registry(LOCK_SH));
  ATOLL_TRY(Fd entry, open_at(registry.get(), ".", O_TMPFILE | O_WRONLY, 0600));
  ATOLL_TRY_VOID(write_all(entry.get(), owner_text(host, id)));
  uint16_t start = 0;
  fill_random({reinterpret_cast<unsigned char*>(&start), sizeof start});
  for (uint32_t i = 0; i < kUidRanges; ++i) {
    uint32_t number = (start + i) % kUidRanges;
    ATOLL_TRY(bool taken, try_take(registry.get(), entry.get(), record, number));
    if (taken) return kFirstUid + number * kUidsPerRange;
  }
  return Error(Code::kExhausted, "every uid range is taken", EAGAIN);
}

Result<void> free_uid_range(const Host& host, const SandboxId& id, int record) {
  auto note = read_file_at(record, kNote);
  if (!note && note.error().system_errno() == ENOENT) return {};
  if (!note) return std::move(note).error();
  auto number = parse_range(*note);
  if (!number) return {};  // cut off by a crash: then the range was never taken
  std::string name = std::to_string(*number);
  ATOLL_TRY(Fd registry, open_registry(LOCK_SH));
  auto owner = read_file_at(registry.get(), name);
  if (!owner && owner.error().system_errno() == ENOENT) return {};
  if (!owner) return std::move(owner).error();
  if (*owner != owner_text(host, id)) return {};
  if (unlinkat(registry.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::system("free uid range " + name);
  return {};
}

Result<void> free_stale_uid_ranges(const Host& host) {
  ATOLL_TRY(Fd registry, open_registry(LOCK_EX));
  ATOLL_TRY(Fd listing, open_at(registry.get(), ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> directory(fdopendir(listing.release()), closedir);
  if (!directory) return Error::system("read the uid registry");
  while (dirent* entry = readdir(directory.get())) {
    if (!parse_range(entry->d_name)) continue;
    ATOLL_TRY(std::string owner, read_file_at(registry.get(), entry->d_name));
    if (!is_stale(host, owner)) continue;
    if (unlinkat(registry.get(), entry->d_name, 0) != 0 && errno != ENOENT)
      return Error::system(std::string("free uid range ") + entry->d_name);
  }
  return {};
}

Result<void> remove_empty_registry() {
  if (rmdir(kRegistry) == 0 || errno == ENOENT || errno == ENOTEMPTY) return {};
  return Error::system(std::string("rmdir ") + kRegistry);
}

}  // namespace atl::warden
