// Packages of npm, pinned by digest: fetched with the network, and later, without it, put where a
// global install puts them. Nothing of them is run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "builder/tree.h"
#include "store/template_manifest.h"

namespace atl::builder {

// Each into `directory`/<number>.tgz, verified.
Result<void> fetch_npm(const std::vector<store::NpmPackage>& packages,
                       const std::string& directory);

Result<void> install_npm(Tree& tree, const std::vector<store::NpmPackage>& packages,
                         const std::string& directory, UnpackBudget& budget);

// "registry=" of the text of an npmrc; empty if it has none.
std::string registry_of_npmrc(const std::string& text);

}  // namespace atl::builder
