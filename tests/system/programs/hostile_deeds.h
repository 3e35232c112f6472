// What a guest of a test does when a file inside tells it to, with every right that a kernel of its
// own gives it. Not part of what is installed: agent-with-hostile-guests alone is made of this.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>

namespace atl::hostile {

// The word in the file; empty while there is none.
std::string wanted_deed(const char* file);

// As poll(2), and looks for the file meanwhile. `port` is which of `polls` is the stream to the
// keeper. Most deeds do not end.
int poll_for_deeds(pollfd* polls, size_t count, size_t port, const char* file);

}  // namespace atl::hostile
