#include "linux/lost_found.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "linux/subvolume.h"

namespace atl::linux {
namespace {

constexpr const char* kLostFound = "lost+found";
constexpr time_t kWeekSeconds = 7 * 24 * 3600;

// When it came; nothing: the name is none of ours.
std::optional<time_t> arrival_of(std::string_view name) {
  time_t at = 0;
  size_t dot = name.find('.');
  if (dot == name.npos) return std::nullopt;
  auto parsed = std::from_chars(name.data(), name.data() + dot, at);
  bool good = parsed.ec == std::errc() && parsed.ptr == name.data() + dot;
  return good ? std::optional(at) : std::nullopt;
}

}  // namespace

// A copy that shares its blocks, then the original goes: a read-only one cannot be moved to another
// directory.
Result<void> set_aside_subvolume(int directory, const std::string& name) {
  auto source = open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!source && source.error().system_errno() == ENOENT) return {};
  if (!source) return std::move(source).error();
  if (mkdirat(directory, kLostFound, 0700) != 0 && errno != EEXIST)
    return Error::system("make lost+found");
  ATOLL_TRY(Fd folder, open_at(directory, kLostFound, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  std::string copy = std::to_string(time(nullptr)) + "." + name;
  ATOLL_TRY_VOID(snapshot_subvolume(source->get(), folder.get(), copy, SubvolumeAccess::kReadOnly));
  source->reset();
  log_warning("set aside for a week", {{"file", std::string(kLostFound) + "/" + copy}});
  return remove_subvolume(directory, name);
}

Result<void> sweep_lost_found(int directory) {
  auto folder = open_at(directory, kLostFound, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder && folder.error().system_errno() == ENOENT) return {};
  if (!folder) return std::move(folder).error();
  ATOLL_TRY(Fd listed, open_at(folder->get(), ".", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<DIR, int (*)(DIR*)> names(fdopendir(listed.get()), closedir);
  if (!names) return Error::system("read lost+found");
  (void)listed.release();  // closedir() closes it
  std::vector<std::string> over;
  while (dirent* entry = readdir(names.get()))
    if (auto at = arrival_of(entry->d_name); at && *at + kWeekSeconds < time(nullptr))
      over.emplace_back(entry->d_name);
  for (const std::string& name : over) ATOLL_TRY_VOID(remove_subvolume(folder->get(), name));
  return {};
}

}  // namespace atl::linux
