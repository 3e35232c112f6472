// OutputPatterns: which files of a sandbox are its artifacts, as its template's [outputs] collect
// says. An artifact's name is its path beneath /tmp/outputs, or for one elsewhere its path without
// the first slash; of two that would have the same name, the one in /tmp/outputs has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"
#include "base/result.h"
#include "sandbox/templates.h"
#include "store/sandbox_rows.h"

namespace atl::sandbox {

class OutputPatterns {
 public:
  // All of /tmp/outputs.
  OutputPatterns();
  // Absolute globs; none means all of /tmp/outputs.
  static Result<OutputPatterns> parse(const std::vector<std::string>& globs);

  struct Pattern {
    std::string directory;  // the longest without a wildcard
    std::string rest;       // a glob of paths beneath it
    Glob glob;              // of whole paths
  };
  const std::vector<Pattern>& patterns() const { return patterns_; }
  // None reaches beyond /tmp/outputs.
  bool are_usual() const;

  static std::string name_of(std::string_view path);
  // Where an artifact of that name may be, the likelier first.
  std::vector<std::string> paths_of(std::string_view name) const;

 private:
  explicit OutputPatterns(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
  bool match(std::string_view path) const;

  std::vector<Pattern> patterns_;  // those within /tmp/outputs first
};

// Those of the sandbox's template, as it is now; the usual ones if it is gone.
OutputPatterns output_patterns(Templates& templates, const store::SandboxRow& row);

}  // namespace atl::sandbox
