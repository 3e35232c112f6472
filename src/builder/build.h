// Build: one image from one file, stage by stage. Runs in a process of its own that does nothing
// else, so that killing it ends the build: its stages die with it.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "builder/image_keeper.h"
#include "builder/jail.h"
#include "builder/protocol.h"

namespace atl::builder {

// The directories of the builder, and what its stages share.
struct Workshop {
  std::string directory;  // S/builder: root's, with builds/, cache/ and ground/
  std::string credentials_path;
  Fd images;
  Ground ground;

  static Result<Workshop> open(const std::string& state_directory);
  std::string work(const std::string& name) const { return directory + "/builds/" + name; }
  std::string cache() const { return directory + "/cache"; }
};

struct BuildOrder {
  Operation operation;
  uint32_t flags = 0;
  int file = -1;
  int log = -1;
};

// `name` is that of a directory in builds/ that does not exist; it is gone when this returns.
Result<KeptImage> build_image(const Workshop& workshop, const std::string& name,
                              const BuildOrder& order);

Result<void> remove_work_directory(const Workshop& workshop, const std::string& name);
// Whatever a builder before us left: no build is under way.
Result<void> remove_leftovers(const Workshop& workshop);

}  // namespace atl::builder
