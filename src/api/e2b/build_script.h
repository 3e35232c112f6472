// The steps of an E2B template as commands of `setup`: each becomes one shell command of root's, in
// whose first line it stands as its author wrote it. Files that a step copies have been put into
// kCopyPlace as archives beforehand.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace atl::api::e2b {

// In /tmp, which is no part of an image.
inline constexpr std::string_view kCopyPlace = "tmp/atoll-copy";

struct BuildStep {
  std::string type;
  std::vector<std::string> arguments;
  std::string archive;  // of COPY: the name of its file in kCopyPlace
};

class BuildScript {
 public:
  // Who runs the first step, and where; empty: in that user's home.
  BuildScript(std::string user, std::string directory)
      : user_(std::move(user)), directory_(std::move(directory)) {}

  // kInvalid: the step is not one, or its arguments are not.
  Result<void> add(const BuildStep& step);

  const std::vector<std::string>& commands() const { return commands_; }
  // Those that hold after the last step.
  const std::string& user() const { return user_; }
  const std::string& directory() const { return directory_; }

 private:
  Result<std::string> run(const BuildStep& step) const;
  Result<std::string> copy(const BuildStep& step) const;
  Result<std::string> enter_directory(const BuildStep& step);
  Result<std::string> become_user(const BuildStep& step);
  Result<std::string> set_variables(const BuildStep& step);
  // Goes to the directory of the steps.
  std::string change_directory() const;
  std::string absolute(const std::string& path) const;

  std::string user_, directory_;
  std::vector<std::pair<std::string, std::string>> variables_;
  std::vector<std::string> commands_;
};

}  // namespace atl::api::e2b
