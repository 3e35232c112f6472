// While it lives, closing a descriptor that a program of the sandbox has sent does not hold the
// agent up. Closing the last one of a socket with SO_LINGER waits, as long as its owner has said;
// so does receiving a message, or closing a socket with messages, whose descriptors are dropped.
// The kernel gives that up for a signal, so the guard has one sent every few milliseconds.
//
// Calls that wait for anything else would be interrupted too: only closes and receives belong here.
#pragma once

namespace atl::agent {

class LingerGuard {
 public:
  LingerGuard();
  ~LingerGuard();
  LingerGuard(const LingerGuard&) = delete;
  LingerGuard& operator=(const LingerGuard&) = delete;
};

}  // namespace atl::agent
