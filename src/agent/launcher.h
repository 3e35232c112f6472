// Starts programs: streams, a leaf, and the clone, by the agent itself or through the spawner.
#pragma once

#include <sys/resource.h>

#include <string_view>

#include "agent/exec.h"
#include "agent/spawner.h"

namespace atl::agent {

// Descriptors that become the standard ones of a program; they stay the caller's.
struct Streams {
  int input;
  int output;
  int error;
};

class Launcher {
 public:
  // Raises this process's limit of open files. Without a spawner the agent clones by itself.
  static Result<Launcher> create(Fd spawner_socket);

  // Where the limit of the group above does not count for leaves (gVisor's): each gets it.
  void limit_leaves(uint32_t pids) { leaf_pids_ = pids; }

  // An error names the operation alone, as StartFailed does. The leaf may be there after an error,
  // and even a process in it.
  // `standard_input` is for a program without input and terminal, and stays the caller's.
  Result<Launched> launch(const Leaf& leaf, const Start& start, std::string_view start_payload,
                          int standard_input, Becomes becomes = Becomes::kProgram);
  // What the next program begins from, if it is that of the exec `number` and controlled. False: it
  // is none.
  [[nodiscard]] bool lend_imprint(uint32_t number, Fd imprint);
  // The same in a leaf that is there already, on given streams: without pipes of its own.
  Result<Launched> launch_beside(const Leaf& leaf, const Start& start, const Streams& streams);

  // A file worker in a leaf of its own. `payload` is the encoded request; the socket becomes its
  // standard input and stays the caller's.
  Result<Launched> launch_worker(const Leaf& leaf, const FileRequest& request,
                                 std::string_view payload, int socket);
  // Fails if a descriptor of this number leaves too few.
  Result<void> check_spare_descriptors(int highest) const;

  // The spawner is gone for good: nothing can ever be started again.
  bool lost() const { return has_spawner_ && !spawner_.alive(); }
  // Turns readable when the spawner is gone; -1 where there is none.
  int spawner_fd() const { return spawner_.fd(); }
  void spawner_ended() { spawner_.give_up(); }

  int null_device() const { return null_device_.get(); }

 private:
  Launcher() = default;
  Result<void> make_leaf(const Leaf& leaf) const;
  // What the spawner has started.
  Result<Launched> take_spawned(Result<pid_t> pid) const;
  Result<Launched> clone_into(const Start& start, std::string_view start_payload,
                              const StartFds& fds, Becomes becomes);

  Fd null_device_;
  Fd file_rules_;
  OpenFilesLimits open_files_ = {};
  bool has_spawner_ = false;
  Spawner spawner_;
  uint32_t leaf_pids_ = 0;  // 0: the group above has the limit
  uint32_t imprint_for_ = 0;
  Fd imprint_;
};

}  // namespace atl::agent
