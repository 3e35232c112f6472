// The files that come with a template, copied over its image: `files/etc/x` becomes /etc/x.
#pragma once

#include "base/result.h"

namespace atl::builder {

// Plain files only; what else there is, is refused. Those in the home directory of the user belong
// to it, all others to root. Links of the image stay inside it.
Result<void> copy_pack_files(int from, int root);

}  // namespace atl::builder
