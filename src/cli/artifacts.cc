#include "cli/artifacts.h"

#include "base/file.h"
#include "cli/local_tree.h"
#include "cli/progress.h"
#include "cli/readable.h"

namespace atl::cli {

namespace json = boost::json;

Result<json::array> download_artifacts(Api& api, const std::string& sandbox,
                                       const std::string& directory) {
  ATOLL_TRY(std::string target, sandbox_target(sandbox));
  ATOLL_TRY(json::array artifacts, api.list(target + "/artifacts", "artifacts"));
  ATOLL_TRY(LocalTree tree, LocalTree::open(directory));
  for (const json::value& value : artifacts) {
    if (!value.is_object()) continue;
    std::string name = text_field(value.as_object(), "name");
    ATOLL_TRY(Fd file, tree.create_file(name, 0644));
    Progress progress(name, number_field(value.as_object(), "size"));
    Result<void> written;
    auto on_bytes = [&](std::string_view bytes) {
      progress.add(bytes.size());
      return (written = write_all(file.get(), bytes)).ok();
    };
    std::string at = target + "/artifacts/" + percent_encode(name, "/-._~");
    ATOLL_TRY_VOID(api.stream({.target = at}, on_bytes));
    ATOLL_TRY_VOID(std::move(written));
  }
  return artifacts;
}

}  // namespace atl::cli
