// The ids among the names in a directory.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace atl {

// Names that are ids of that kind, sorted; everything else is left out. No directory: none.
template <typename Id>
Result<std::vector<Id>> list_ids(const std::string& path) {
  std::vector<Id> ids;
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory && errno == ENOENT) return ids;
  if (!directory) return Error::system("read directory " + path);
  while (dirent* entry = readdir(directory.get()))
    if (auto id = Id::parse(entry->d_name)) ids.push_back(*id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace atl
