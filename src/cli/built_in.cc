#include "cli/built_in.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "cli/state_directory.h"

namespace atl::cli {

namespace fs = std::filesystem;

Result<void> install_built_in(const std::string& binaries, const Places& places) {
  std::error_code error;
  fs::path source = fs::path(binaries).parent_path() / "share/atoll/templates";
  std::string target = places.state + "/built-in", staged = target + ".new";
  ATOLL_TRY_VOID(remove_tree(staged));
  if (!fs::is_directory(source, error)) {
    log_warning("no templates come with this Atoll", {{"looked_in", source.string()}});
    fs::create_directory(staged, error);
  } else {
    fs::copy(source, staged, fs::copy_options::recursive, error);
  }
  if (error) return Error::from_errno("copy the templates from " + source.string(), error.value());
  ATOLL_TRY_VOID(remove_tree(target));
  if (rename(staged.c_str(), target.c_str()) != 0) return Error::system("rename " + staged);
  return {};
}

}  // namespace atl::cli
