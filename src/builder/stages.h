// The stages of a build, each a function that runs in a jail of its own and finds what the one
// before left in /build:
//
//   open    the pack            → pack/
//   fetch   Debian or registry  → root.tar or oci/       the only one with the network
//   unpack  archives            → root/
//   write   root/               → image.erofs            by mkfs.erofs, nothing else running
//
// An image is written by our mkfs over a tree of plain files: no byte of the file system itself
// comes from elsewhere.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::builder {

// Answers of open_pack(): what must be fetched.
inline constexpr const char* kFetchNothing = "nothing";
inline constexpr const char* kFetchDebian = "debian";
inline constexpr const char* kFetchRegistry = "registry";
inline constexpr const char* kFetchBoth = "both";

Result<std::string> open_pack(int pack);

Result<std::string> fetch_debian();
// Layers of an image, packages of npm. `credentials`: a file, or -1.
Result<std::string> fetch_registry(int credentials);

// What open_pack() and the fetch have left.
Result<std::string> unpack_source();
// A tar of a whole root instead.
Result<std::string> unpack_tree(int archive);

Result<std::string> write_image();

Result<std::string> remove_work();

}  // namespace atl::builder
