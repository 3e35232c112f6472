// InputPump: passes a descriptor on to the standard input of an exec, on a thread of its own, until
// the descriptor or the exec ends.
#pragma once

#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/program_output.h"

namespace atl::cli {

class InputPump {
 public:
  // `fd` must stay open while the pump lives.
  static Result<std::unique_ptr<InputPump>> start(Api api, ExecName name, int fd);
  // The exec has ended: the server answers what is still under way.
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

 private:
  InputPump(Api api, ExecName name, int fd, Fd stop)
      : api_(std::move(api)), name_(std::move(name)), fd_(fd), stop_(std::move(stop)) {}

  void run();
  Result<void> send(std::string_view bytes, bool is_last);
  bool wait_for_input();

  Api api_;
  ExecName name_;
  int fd_;
  Fd stop_;
  uint64_t offset_ = 0;
  std::thread thread_;
};

}  // namespace atl::cli
