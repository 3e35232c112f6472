// WaitingProgram: an interpreter that was started in an isolate before anybody asked for it, and
// waits at its control socket to become the program of the first exec that fits it.
#pragma once

#include <string>
#include <vector>

#include "agent/protocol.h"
#include "sandbox/exec.h"
#include "store/template_manifest.h"

namespace atl::sandbox {

struct WaitingProgram {
  uint32_t number = 0;  // of its exec
  uint32_t pid = 0;
  uint32_t open_files = 0;                    // its limit
  bool copied = false;                        // from a zygote
  std::vector<std::string> environment = {};  // that it was started with

  // Whether a program of the request would be no other if it were started now.
  bool fits(const ExecRequest& request) const;
};

// What starts one, in isolates of this template; nothing if its language has none.
std::optional<agent::Start> waiting_start(const store::TemplateManifest& manifest);

// What makes a waiting interpreter the program of a request that it fits.
std::string beginning_message(const ExecRequest& request);

}  // namespace atl::sandbox
