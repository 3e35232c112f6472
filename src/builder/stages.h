// The stages of a build, each a function that runs in a jail of its own and finds what the one
// before left in /build:
//
//   open    the pack            → pack/
//   fetch   Debian or registry  → root.tar or oci/       with the network
//   Go      a module            → go/program             go_build.h
//   unpack  archives            → root/
//   write   root/               → image.erofs            by mkfs.erofs, nothing else running
//
// An image is written by our mkfs over a tree of plain files: no byte of the file system itself
// comes from elsewhere.
#pragma once

#include <string>

#include "base/result.h"

namespace atl::builder {

// What must be fetched, in the answer of open_pack().
inline constexpr char kFetchDebian = 'd';
inline constexpr char kFetchRegistry = 'r';
inline constexpr char kFetchGo = 'g';

Result<std::string> open_pack(int pack);

Result<std::string> fetch_debian();
// Layers of an image, packages of npm. `credentials`: a file, or -1.
Result<std::string> fetch_registry(int credentials);

// The steps of go_build.h.
Result<std::string> fetch_go_zips();
Result<std::string> unpack_go_zips();
Result<std::string> resolve_go_modules();
Result<std::string> compile_go_program();

// What open_pack() and the fetch have left.
Result<std::string> unpack_source();
// A tar of a whole root instead.
Result<std::string> unpack_tree(int archive);

Result<std::string> write_image();

Result<std::string> remove_work();

}  // namespace atl::builder
