// A program compiled from a Go module, in four steps of which each runs in a jail of its own:
//
//   fetch    network, libcurl     → go/toolchain.zip, go/module.zip
//   unpack   no network           → go/toolchain/, go/module/     once their hashes are the pinned
//   resolve  network, that Go     → go/modules/                   what the module's go.sum pins
//   compile  no network, that Go  → go/program
//
// The module is compiled as the main one, so its own go.sum is the law: Go refuses whatever is not
// in there, or is and has another hash. Nothing of any module is run, and there is no cgo.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "builder/tree.h"
#include "store/go_program.h"

namespace atl::builder {

Result<void> fetch_go(const store::GoProgram& program);
Result<void> unpack_go(const store::GoProgram& program);
Result<void> resolve_go(const store::GoProgram& program);
Result<void> compile_go(const store::GoProgram& program);

// Puts it into the image, and says of which version it is where its users find that
// (usr/lib/atoll/go-program).
Result<void> install_go(Tree& tree, const store::GoProgram& program);

// The servers in a list as GOPROXY has it, in their order; without those that are no server
// ("direct", "off").
std::vector<std::string> servers_of_goproxy(const std::string& list);

// As the protocol of these servers writes paths and versions: capital letters are "!" and small.
std::string escape_module(const std::string& text);

}  // namespace atl::builder
