// A pseudo terminal of the sandbox's own devpts: the agent holds the master, the program's standard
// streams are the other end.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/protocol.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

struct Terminal {
  Fd master;  // non-blocking
  Fd program_end;
};
Result<Terminal> open_terminal(const TerminalSize& size);

// The kernel tells the programs on it.
void resize_terminal(int master, const TerminalSize& size);

// What a user would type to end the input: twice in the middle of a line, for the first then only
// hands over what was typed.
std::string end_of_input(int master, char last_byte);

// In the new process, which leads its session: makes it the controlling one. 0, or -1 with errno.
int take_terminal(int program_end, uid_t owner);

}  // namespace atl::agent
