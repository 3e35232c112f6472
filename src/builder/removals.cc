#include "builder/removals.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>

#include "base/fd.h"
#include "base/file.h"
#include "base/glob.h"
#include "builder/tree.h"

namespace atl::builder {
namespace {

struct Pattern {
  Glob glob;
  std::string start;  // before its first special character: most paths end here

  bool matches(std::string_view path) const {
    return path.starts_with(start) && glob.matches(path);
  }
};

Result<std::vector<Pattern>> parse_all(const std::vector<std::string>& globs) {
  std::vector<Pattern> patterns;
  for (const std::string& text : globs) {
    ATOLL_TRY(Glob glob, Glob::parse(text));
    patterns.push_back({std::move(glob), text.substr(0, text.find_first_of("*?[\\"))});
  }
  return patterns;
}

struct Removal {
  std::vector<Pattern> patterns;
  uint64_t removed = 0;

  bool concerns(const std::string& path) const {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const Pattern& pattern) { return pattern.matches(path); });
  }

  Result<void> look_through(Fd directory, const std::string& path, size_t depth) {
    if (depth > kMaxDepth) return Error(Code::kInvalid, path + " is deeper than 128");
    ATOLL_TRY(std::vector<std::string> names, names_in(directory.get()));
    for (const std::string& name : names) {
      std::string inner = path + "/" + name;
      if (concerns(inner)) {
        ATOLL_TRY_VOID(remove_at(directory.get(), name));
        ++removed;
        continue;
      }
      auto next = open_at(directory.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (next) ATOLL_TRY_VOID(look_through(std::move(*next), inner, depth + 1));
    }
    return {};
  }

  // All at once: what is removed while a directory is read may hide what comes next.
  static Result<std::vector<std::string>> names_in(int directory) {
    ATOLL_TRY(Fd listing, open_at(directory, ".", O_RDONLY | O_DIRECTORY));
    std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(listing.release()), closedir);
    if (!entries) return Error::system("read a directory of the image");
    std::vector<std::string> names;
    while (const dirent* entry = readdir(entries.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    return names;
  }
};

}  // namespace

Result<uint64_t> remove_matching(int root, const std::vector<std::string>& globs) {
  if (globs.empty()) return uint64_t{0};
  ATOLL_TRY(std::vector<Pattern> patterns, parse_all(globs));
  ATOLL_TRY(Fd directory, open_at(root, ".", O_RDONLY | O_DIRECTORY));
  Removal removal{.patterns = std::move(patterns)};
  ATOLL_TRY_VOID(removal.look_through(std::move(directory), "", 0));
  return removal.removed;
}

}  // namespace atl::builder
