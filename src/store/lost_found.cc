#include "store/lost_found.h"

#include <stdio.h>
#include <time.h>

#include <charconv>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/log.h"

namespace atl::store {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMsOfSecond = 1000;

std::string lost_found_in(const fs::path& directory) { return directory / "lost+found"; }

// Whether a name says that it came there a week before.
bool is_over(const std::string& name, int64_t now_ms) {
  int64_t seconds = 0;
  const char* end = name.data() + name.size();
  auto parsed = std::from_chars(name.data(), end, seconds);
  bool good = parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.';
  return good && seconds * kMsOfSecond + kLostFoundTimeMs < now_ms;
}

}  // namespace

Result<void> set_aside(const std::string& folder, const std::string& name) {
  fs::path from = fs::path(folder) / name;
  std::string target = lost_found_in(fs::path(folder).parent_path());
  ATOLL_TRY_VOID(make_directory(target, 0700));
  std::string entry = std::to_string(time(nullptr)) + "." + fs::path(folder).filename().string() +
                      "." + from.filename().string();
  target += "/" + entry;
  if (rename(from.c_str(), target.c_str()) != 0 && errno != ENOENT)
    return Error::system("move " + from.string() + " to lost+found");
  log_warning("set aside for a week", {{"file", "lost+found/" + entry}});
  return {};
}

Result<void> sweep_lost_found(const std::string& directory, int64_t now_ms) {
  std::string place = lost_found_in(directory);
  std::vector<fs::path> over;
  std::error_code error;
  for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error))
    if (is_over(it->path().filename().string(), now_ms)) over.push_back(it->path());
  if (error && error.value() == ENOENT) return {};
  for (const fs::path& path : over)
    if (!error) fs::remove_all(path, error);
  if (error) return Error::from_errno("sweep " + place, error.value());
  return {};
}

}  // namespace atl::store
