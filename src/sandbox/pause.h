// Pause: a sandbox stopped in memory. Its programs use no processor and keep their pids; its time
// stands still: the ttls, the wall time of execs and of runs.
//
// The row says so before the first process is stopped and until the last one goes on, so whoever
// takes up a row that is paused freezes the isolate, again or at last. After a time that the caller
// allowed its memory may have been given back (sandbox/release.cc): then it has no isolate until it
// goes on. One thread; a part of Sandbox, in a file of its own.
#pragma once

#include <memory>

#include "sandbox/sandbox.h"

namespace atl::sandbox {

class Pause {
 public:
  // While one is held the sandbox is not paused, resumed or changed by others.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<Sandbox> sandbox);
    ~Turn();
    Turn(Turn&&) = default;

   private:
    std::shared_ptr<Sandbox> sandbox_;
  };
  static Task<Turn> take_turn(std::shared_ptr<Sandbox> sandbox);

  // Returns when nothing runs any more. One that is paused already is a success, here and below.
  static Task<Result<void>> begin(std::shared_ptr<Sandbox> sandbox);
  static Task<Result<void>> end(std::shared_ptr<Sandbox> sandbox);
  // For whoever is about to use what is inside: resumes it if it was created so that anybody may.
  // An error unless it runs then.
  static Task<Result<void>> wake(std::shared_ptr<Sandbox> sandbox);

  // The same for an exec or a run: keeps what it holds first, under the label, if it was created
  // so.
  static Task<Result<void>> begin_step(std::shared_ptr<Sandbox> sandbox, std::string label);

  // After a restart: brings the isolate to what the row says.
  static Task<Result<void>> take_up(std::shared_ptr<Sandbox> sandbox);

  // For who gives a sandbox's memory back: what is new stands still from the beginning; the row of
  // one that goes on; and that it does, once that is stored.
  static void hold(Sandbox& sandbox);
  static store::SandboxRow row_after(const Sandbox& sandbox);
  static void let_go(Sandbox& sandbox, const store::SandboxRow& row);

 private:
  static Task<Result<void>> store(Sandbox& sandbox, store::SandboxRow row);
  static Task<Result<void>> freeze(std::shared_ptr<Sandbox> sandbox);
  static Task<Result<void>> go_on(std::shared_ptr<Sandbox> sandbox);
};

}  // namespace atl::sandbox
