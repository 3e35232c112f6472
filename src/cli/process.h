// Starting a program from an open descriptor and ending it, for the processes that `atoll up`
// supervises.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace atl::cli {

struct Identity {
  uid_t uid;
  gid_t gid;
};

struct ProgramStart {
  int program;                         // stays open for the next start
  std::vector<std::string> arguments;  // arguments[0] is the name
  // Taken before the program is executed, with no_new_privs, so that it never holds a privilege.
  std::optional<Identity> identity;
  std::vector<std::string> environment = {};  // NAME=VALUE, beside the few that all have
  int output = -1;                            // for its standard output and error; -1: the caller's
};

struct StartedProcess {
  pid_t pid;
  Fd pidfd;
};

// The process is in a session of its own, with an almost empty environment and no descriptor but 0,
// 1 and 2. Fails also when the program could not be executed.
Result<StartedProcess> start_program(const ProgramStart& start);

// What a program prints until it ends, on both streams; start.output is not used. kTimeout, and the
// program is killed, after `limit`.
struct ProgramAnswer {
  int status;  // as wait(2) encodes it
  std::string text;
};
Result<ProgramAnswer> ask_program(ProgramStart start, std::chrono::milliseconds limit);

// SIGTERM, and SIGKILL after `grace`; returns when the process has ended. Works for any process, a
// child or not; a child still has to be waited for.
enum class Ended : unsigned char { kBySelf, kByForce };
Result<Ended> end_process(int pidfd, std::chrono::milliseconds grace);

// Whether the process ended within the time.
Result<bool> wait_for_end(int pidfd, std::chrono::milliseconds limit);

}  // namespace atl::cli
