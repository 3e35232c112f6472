// A file that is being written and has no name yet: gone with the process that holds it, until it
// is published. Where the file system has no nameless files it has a hidden name meanwhile; such a
// name, left by a worker that was killed, is taken over by the next draft for the same name.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

enum class Existing : uint8_t { kKeep, kReplace };
enum class Published : uint8_t { kNew, kReplaced };

class FileDraft {
 public:
  // In `directory`, or any other one of the same mount; `name` is what it shall be called.
  static Result<FileDraft> create(int directory, std::string_view name);
  FileDraft(FileDraft&& other) noexcept = default;
  FileDraft& operator=(FileDraft&&) = delete;
  ~FileDraft();

  int fd() const { return file_.get(); }
  Result<void> append(std::string_view bytes);

  // Gives it its name in one step: whoever looks sees the old file or the new one. An existing
  // directory is never replaced.
  Result<Published> publish(int directory, const std::string& name, Existing existing);

 private:
  FileDraft() = default;
  Result<void> take_hidden_name(int directory, std::string_view name);
  Result<void> link_hidden(int directory, std::string_view name);

  Fd file_;
  Fd hidden_directory_;      // of hidden_name_
  std::string hidden_name_;  // empty: it has none
};

// A hidden name for something that shall get `name`; `attempt` tells several apart.
std::string hidden_name(std::string_view name, int attempt);

}  // namespace atl::agent
