// The standard streams of a program, both ends: pipes, or one terminal. Only the agent's ends are
// non-blocking: programs do not expect EAGAIN.
#pragma once

#include "agent/protocol.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

struct Pipe {
  Fd read_end;
  Fd write_end;
};
// What a program writes to.
Result<Pipe> make_output_pipe();

struct ProgramStreams {
  struct Ends {
    Fd input;  // none if the program has no input
    Fd output;
    Fd error;    // none beside a terminal
    Fd control;  // none if the program is not controlled
  };
  Ends ours;
  Ends programs;
};
// An error names the operation alone.
Result<ProgramStreams> open_streams(const Start& start);

}  // namespace atl::agent
