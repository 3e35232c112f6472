// One connection of the daemon: whole frames in, whole frames out, neither blocking. An error of
// any call means that the connection must be dropped; the next one starts anew.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/protocol.h"
#include "base/fd.h"
#include "base/result.h"

namespace atl::agent {

class Connection {
 public:
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // Output waits in its own window until there is room here, so nothing is kept twice.
  bool has_room() const { return queued() < kMaxQueuedBytes; }
  bool wants_write() const { return queued() > 0; }
  void queue(std::string_view frame) { outgoing_.append(frame); }
  Result<void> flush();
  // Gives back the memory that sending needed, if all is sent.
  void rest();

  // Takes what has arrived, at most one chunk; next() then gives the whole frames among it.
  Result<void> receive();
  Result<std::optional<Frame>> next() { return reader_.next(); }

  // What came beside the bytes of the last kImprint, once.
  Fd take_descriptor() { return std::move(descriptor_); }

  uint64_t received_bytes() const { return received_bytes_; }

  // The daemon has answered hello.
  bool welcomed() const { return welcomed_; }
  void set_welcomed() { welcomed_ = true; }

 private:
  static constexpr size_t kMaxQueuedBytes = 128 * 1024;
  size_t queued() const { return outgoing_.size() - head_; }

  Fd socket_;
  FrameReader reader_{FrameReader::Side::kAgent};
  Fd descriptor_;
  std::string outgoing_;
  size_t head_ = 0;  // first byte of outgoing_ not yet sent
  uint64_t received_bytes_ = 0;
  bool welcomed_ = false;
};

}  // namespace atl::agent
