// Copying between this host and the files of a sandbox.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/api.h"
#include "cli/commands.h"

namespace atl::cli {

struct TransferOptions {
  Depth depth = Depth::kFlat;
  std::string user = {};  // empty: the sandbox's own
};

// `local` is a file, "-" for standard input, or with kRecursive a directory. As with cp(1), a
// target that is a directory takes the copy into itself.
Result<void> copy_into(Api& api, const std::string& local, const RemotePath& remote,
                       const TransferOptions& options);
Result<void> copy_out(Api& api, const RemotePath& remote, const std::string& local,
                      const TransferOptions& options);

Result<void> put_bytes(Api& api, const RemotePath& remote, std::string_view bytes);

// /v1/sandboxes/ID/files/PATH?QUERY, and the user if there is one.
Result<std::string> file_target(const RemotePath& place, const std::string& query,
                                const std::string& user = "");

}  // namespace atl::cli
