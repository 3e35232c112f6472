// What is in a layer beside the files of its sandbox: work/ of the overlay, of which upper/ holds
// those, and a mark of what runs there if that is no jail. A machine's layer holds a disk and a
// sentry's a record of files that nothing else reads; so one is never taken for another.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace atl::linux {

enum class LayerOrigin : unsigned char { kNew, kSnapshot };

// `mark` is empty for a jail; otherwise it keeps how much the layer may hold. EMEDIUMTYPE: it comes
// from a layer with another mark.
Result<void> make_layer_parts(int layer, const std::string& mark, uint64_t limit_bytes,
                              LayerOrigin origin);

// Of a marked layer that was just kept as a snapshot, when so much is charged to it. Simple quotas
// charge it for as long as the snapshot has that, also for what is written in its place; but a
// guest whose disk cannot be written takes it for broken. So all of it may be written once more: as
// much as was allowed at first, whatever is in the layer says.
Result<void> make_room_for_disk(int layer, uint64_t charged_bytes);

}  // namespace atl::linux
