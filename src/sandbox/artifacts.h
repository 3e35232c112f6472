// Artifacts: the files that a run left where its template collects them. While the sandbox lives
// they are read inside; when it is deleted those that fit are kept in the store for a day.
//
// What is inside may be hostile: number, size and time are bounded, and a sandbox that does not
// answer loses its artifacts, not its deletion.
#pragma once

#include <string>
#include <vector>

#include "sandbox/files.h"
#include "sandbox/output_patterns.h"
#include "store/artifacts.h"

namespace atl::sandbox {

struct ArtifactList {
  std::vector<store::Artifact> artifacts;
  bool truncated = false;  // there are more, or larger ones, than are listed
};

// Of a running sandbox.
Task<Result<ArtifactList>> list_artifacts(std::shared_ptr<Sandbox> sandbox,
                                          OutputPatterns patterns);
// For sure. What was put into /tmp/outputs and taken away again may count.
bool has_no_artifacts(Sandbox& sandbox, const OutputPatterns& patterns);
// Keeps what fits; logs what went wrong.
Task<void> keep_artifacts(std::shared_ptr<Sandbox> sandbox, OutputPatterns patterns,
                          Services& services);

}  // namespace atl::sandbox
