// PoolWatch: sees within a second that the layer pool cannot be written any more (an error beneath
// it makes btrfs read-only for good) and mounts it anew. Isolates hold it, with files that cannot
// be written, so they are ended first; their sandboxes fail. Snapshots, volumes and layers that are
// kept are as the last commit left them.
//
// Of the service's thread. The mounting, which may take long, is done by a child of its own.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/result.h"
#include "warden/host.h"

namespace atl::warden {

// From now on there is no pool, because of that.
void lose_pool(Host& host, const Error& why);

class PoolWatch {
 public:
  explicit PoolWatch(Host& host) : host_(host) {}

  int ms_to_look() const;
  // Looks, if it is time to. True: a child is to be forked that ends with mount_anew().
  bool is_to_mount();
  void begin(pid_t child);
  // In the child; how it ends. Whoever holds the pool is ended where that stands in the way.
  int mount_anew();
  // Takes what it has mounted. False: it was another child.
  bool ended(pid_t child, int status);
  void stop();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  Host& host_;
  SteadyTime next_look_{};
  pid_t child_ = 0;
};

}  // namespace atl::warden
