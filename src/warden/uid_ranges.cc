#include "warden/uid_ranges.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "linux/uid_registry.h"

namespace atl::warden {
namespace {

using Registry = linux::UidRegistry;

constexpr const char* kNote = "uid_range";

std::string owner_text(const Host& host, const SandboxId& id) {
  return host.run_dir + "\n" + id.string() + "\n";
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

// The note is written before the range is taken: a note of a range that is not ours is harmless,
// because freeing compares the owner; a range without a note would stay until the next start.
Result<uid_t> take_uid_range(const Host& host, const SandboxId& id, int record) {
  ATOLL_TRY(Registry registry, Registry::open(Registry::Lock::kShared));
  auto write_note = [record](const std::string& name) -> Result<void> {
    ATOLL_TRY(Fd note, open_at(record, kNote, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    return write_all(note.get(), name);
  };
  ATOLL_TRY(uint32_t number, registry.take(kUidRanges, owner_text(host, id), write_note));
  return kFirstUid + number * kUidsPerRange;
}

Result<void> free_uid_range(const Host& host, const SandboxId& id, int record) {
  auto note = read_file_at(record, kNote);
  if (!note && note.error().system_errno() == ENOENT) return {};
  if (!note) return std::move(note).error();
  auto number = Registry::parse(*note);
  if (!number) return {};  // cut off by a crash: then the range was never taken
  ATOLL_TRY(Registry registry, Registry::open(Registry::Lock::kShared));
  return registry.free(*number, owner_text(host, id));
}

Result<void> free_stale_uid_ranges(const Host& host) {
  ATOLL_TRY(Registry registry, Registry::open(Registry::Lock::kAlone));
  return registry.free_stale([&host](const std::string& owner) { return is_stale(host, owner); });
}

Result<void> remove_empty_registry() { return Registry::remove_empty(); }

}  // namespace atl::warden
