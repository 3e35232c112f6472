#include "agent/file_list.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "agent/file_entry.h"
#include "agent/file_path.h"
#include "agent/file_walk.h"

namespace atl::agent {
namespace {

constexpr size_t kLargestBatch = 16 * 1024;

// The cursor relative to the directory; nothing if it is behind everything in it.
std::optional<std::string> relative_cursor(std::string_view cursor, std::string_view directory) {
  std::string prefix = join_path(directory, "");
  if (cursor.starts_with(prefix)) return std::string(cursor.substr(prefix.size()));
  if (cursor < prefix) return std::string();
  return std::nullopt;
}

}  // namespace

Result<Fd> open_directory(const std::string& path) {
  Fd directory = open_any(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (!directory) return file_error("open");
  return directory;
}

uint32_t effective_limit(const FileRequest& request) {
  return request.limit == 0 ? kMaxListEntries : std::min(request.limit, kMaxListEntries);
}

Result<void> list_directory(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Fd root, open_directory(request.path));
  std::string_view base = trimmed(request.path);
  auto after = relative_cursor(request.cursor, base);
  if (!after) return {};
  uint32_t left = effective_limit(request);
  WalkOptions options;
  options.depth = request.depth;
  options.after = *after;
  // Of each directory no more than these can be told; a name and what is beneath it are two.
  options.batch = std::min<size_t>(kLargestBatch, size_t{left} * 2);
  FileWalk walk(std::move(root), std::move(options));
  while (left > 0) {
    ATOLL_TRY(auto walked, walk.next());
    if (!walked) return {};
    std::string path = join_path(base, walked->path);
    if (path.size() > kMaxPathBytes) continue;
    auto entry = read_entry(walked->directory, walked->name, std::move(path));
    if (!entry) continue;  // gone meanwhile, or in a directory that may be read but not entered
    ATOLL_TRY_VOID(wire.send(encode_record(*entry)));
    --left;
  }
  return {};
}

Result<void> list_tree(const FileRequest& request, FileWire& wire) {
  ATOLL_TRY(Fd root, open_directory(request.path));
  std::string_view base = trimmed(request.path);
  WalkOptions options;
  options.file_system = WalkOptions::FileSystem::kOfRoot;
  FileWalk walk(std::move(root), std::move(options));
  while (true) {
    ATOLL_TRY(auto walked, walk.next());
    if (!walked) return {};
    std::string path = join_path(base, walked->path);
    if (path.size() > kMaxPathBytes) continue;
    auto entry = read_entry(walked->directory, walked->name, std::move(path), Times::kOfChange);
    if (!entry) return std::move(entry).error();
    ATOLL_TRY_VOID(wire.send(encode_record(*entry)));
  }
}

}  // namespace atl::agent
