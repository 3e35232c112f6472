// What the routes of files have in common: the path after /files, ?user=, ?mode=.
#pragma once

#include <string>
#include <string_view>

#include "api/router.h"
#include "sandbox/files.h"
#include "sandbox/sandboxes.h"

namespace atl::api::v1 {

// What a request is about: the sandbox, the user, and a path that is clean.
struct FileTarget {
  sandbox::Files files;
  std::string path;
};

// Of a route whose first parameter is the sandbox and whose second the rest of the path.
Result<FileTarget> file_target(const Call& call, sandbox::Sandboxes& sandboxes);
// The files of the sandbox that the first parameter names.
Result<sandbox::Files> files_of(const Call& call, sandbox::Sandboxes& sandboxes);

// A path as clients write it, with or without one slash at its end.
Result<std::string> clean_path(std::string path);
// ?path=, by default the home of the user; its bytes may be anything but NUL.
Result<std::string> path_parameter(const http::Request& request);
// Whether the query has the word, with or without a value.
bool has_word(std::string_view query, std::string_view word);
// Permission bits in octal, 0 if there is none.
Result<uint32_t> parse_mode(std::string_view name, std::string_view text);
Result<uint32_t> mode_parameter(const http::Request& request);

}  // namespace atl::api::v1
