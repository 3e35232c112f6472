// PeerWatch: whether another process of this Atoll turns its main loop (linux/heartbeat.h). Who
// calls that process asks here first and while it waits, so that a call to one that hangs is
// refused in seconds; the supervisor ends and restarts it meanwhile.
//
// One thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "linux/heartbeat.h"

namespace atl::isolate {

// Silence after which no call is begun and those under way are given up.
inline constexpr std::chrono::milliseconds kPeerPatience{3'000};
// Who waits for an answer looks so often whether it can still come.
inline constexpr std::chrono::milliseconds kPeerLook{500};

class PeerWatch {
 public:
  // `directory` holds the heartbeat of `program`.
  PeerWatch(std::string directory, const std::string& program)
      : heartbeat_(std::move(directory), program) {}

  // To be called every kPeerLook; `passed` since the last time.
  void look(std::chrono::milliseconds passed) { heartbeat_.look(passed); }

  bool is_silent() const { return heartbeat_.silence() >= kPeerPatience; }
  // For people; empty: it answers, or has only just been asked.
  std::string_view trouble() const;

 private:
  linux::HeartbeatWatch heartbeat_;
};

}  // namespace atl::isolate
