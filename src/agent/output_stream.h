// One output stream of one exec as the daemon sees it: bytes with offsets. Keeps what is not
// acknowledged, at most kWindowBytes, so that any of it can be sent again on another connection.
//
//   acknowledged ≤ sent ≤ produced ≤ acknowledged + kWindowBytes,  produced ≤ limit
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/protocol.h"

namespace atl::agent {

class OutputStream {
 public:
  explicit OutputStream(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // How many bytes may be appended now.
  size_t room() const { return kWindowBytes - (buffer_.size() - head_); }
  // Nothing more will be kept, whatever is acknowledged.
  bool limit_reached() const { return produced() == limit_bytes_; }

  // At most room() bytes. What is beyond the limit is counted as cut.
  void append(std::string_view bytes);
  // Never less than what was produced.
  void set_limit(uint64_t limit_bytes) { limit_bytes_ = std::max(limit_bytes, produced()); }
  void count_cut(uint64_t bytes) { cut_ += bytes; }

  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t sent() const { return sent_; }
  uint64_t produced() const { return acknowledged_ + (buffer_.size() - head_); }
  uint64_t cut() const { return cut_; }

  // The next bytes to send, at most kMaxOutputBytes; empty if all are sent.
  std::string_view unsent() const;
  void mark_sent(size_t bytes);

  // The daemon has everything before `offset`. False, and no change, if that moves back or is past
  // what was sent.
  bool acknowledge(uint64_t offset);
  // A new connection goes on from `offset`. False, and no change, if those bytes are not here.
  bool resume_from(uint64_t offset);

 private:
  void release_until(uint64_t offset);

  uint64_t limit_bytes_;
  uint64_t acknowledged_ = 0;
  uint64_t sent_ = 0;
  uint64_t cut_ = 0;
  std::string buffer_;
  size_t head_ = 0;  // place in buffer_ of the byte at offset acknowledged_
};

}  // namespace atl::agent
