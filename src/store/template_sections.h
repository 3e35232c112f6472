// What a template says about its sandboxes, written out again as sections of a template.toml. A
// template that grows from another takes from it what it does not say itself.
#pragma once

#include <string>

#include "store/template_manifest.h"

namespace atl::store {

// [defaults].
std::string defaults_text(const TemplateDefaults& defaults);
// [start].
std::string start_text(const StartProgram& start);

// Those of [context], [[run]], [start], [network], [outputs] and [defaults] that `base` has and
// `own` has not, to be put at the end of the text of `own`.
std::string inherited_text(const TemplateManifest& own, const TemplateManifest& base);

}  // namespace atl::store
