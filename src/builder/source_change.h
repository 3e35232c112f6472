// Text of a module's sources that is another when it is compiled: what a template pins by its hash
// and mends. To be used in a jail.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/go_program.h"

namespace atl::builder {

// In the module that is unpacked there. Text that is not there exactly once is an error: the module
// is not the one that the change was written for.
Result<void> change_sources(const std::string& module_directory,
                            const std::vector<store::SourceChange>& changes);

}  // namespace atl::builder
