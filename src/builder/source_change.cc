#include "builder/source_change.h"

#include "base/file.h"

namespace atl::builder {
namespace {

constexpr size_t kMaxSourceBytes = 4 << 20;

}  // namespace

Result<void> change_sources(const std::string& module_directory,
                            const std::vector<store::SourceChange>& changes) {
  for (const store::SourceChange& change : changes) {
    std::string path = module_directory + "/" + change.file;
    ATOLL_TRY(std::string text, read_file(path, kMaxSourceBytes));
    size_t at = text.find(change.from);
    if (at == text.npos || text.find(change.from, at + 1) != text.npos)
      return Error(
          Code::kInvalid,
          change.file + " does not have exactly once what is to be changed: " + change.from);
    text.replace(at, change.from.size(), change.into);
    ATOLL_TRY_VOID(replace_file(path, text, 0644));
  }
  return {};
}

}  // namespace atl::builder
