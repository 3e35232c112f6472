// A root tar from Debian packages, by mmdebstrap, in a jail with the network. Maintainer scripts of
// packages are foreign code: they run in here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/template_manifest.h"

namespace atl::builder {

// Writes this host's own sources of the suite to /build/sources.list; gives the options that say
// how they are reached.
Result<std::vector<std::string>> write_apt_sources(const std::string& suite);
// Of programs that make files: every one gives the same for the same packages.
std::vector<std::string> build_environment();

// Leaves the tar at `target`. Packages are taken from /cache if they are there, and left there.
// `files`: a directory whose Python sources are compiled with the others; empty: none.
Result<void> make_debian_root(const store::DebianSource& source, const std::string& files,
                              const std::string& target);

// Whether an entry of that tar belongs in an image: not caches, lists, logs and the like; a kernel
// only where machines are run.
bool is_kept_of_debian(std::string_view path, store::TemplateKind kind);

}  // namespace atl::builder
