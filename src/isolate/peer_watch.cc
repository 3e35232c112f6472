#include "isolate/peer_watch.h"

namespace atl::isolate {

// Longer than the supervisor needs to start one that died.
constexpr std::chrono::milliseconds kMostAbsence{1'500};

std::string_view PeerWatch::trouble() const {
  if (is_silent()) return "it does not answer";
  return heartbeat_.absence() >= kMostAbsence ? "it does not run" : "";
}

}  // namespace atl::isolate
