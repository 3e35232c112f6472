// Carried: one connection through a passage, as either end knows it: its socket, what the other end
// has sent for it, and how much each may still send. What it has to tell the other end it appends
// to the stream's queue.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "microvm/passage_frame.h"

namespace atl::microvm {

class Carried {
 public:
  // kConnecting: its first news is whether it is connected.
  enum class Begins : unsigned char { kConnecting, kConnected };
  Carried(uint32_t number, Fd socket, Transport transport, Begins begins);
  // A question that a guest asks: the answer is for `answered`, and its end.
  using Answered = std::function<void(std::string_view)>;
  Carried(uint32_t number, Answered answered);

  uint32_t number() const { return number_; }
  bool is_question() const { return transport_ == Transport::kQuestion; }
  // Of a question the guest has none.
  int socket() const { return socket_.get(); }
  short events(bool may_read) const;

  // True: it goes on. False: it is over here, and the other end is told so or knows. An error: the
  // other end breaks the protocol.
  Result<bool> take(const PassageFrame& frame, std::string& queue);
  // After a poll that gave `events`.
  bool move_bytes(short events, bool may_read, std::string& queue);

 private:
  bool take_connected(std::string& queue);
  bool write_socket(std::string& queue);
  bool read_socket(std::string& queue);
  bool take_datagram(std::string_view data, std::string& queue);
  // The program on the socket sees that it was cut off.
  bool reset(std::string& queue);
  void cut_socket();
  bool is_over() const { return ended_here_ && shut_; }

  uint32_t number_;
  Fd socket_;
  Transport transport_;
  Answered answered_;
  bool connecting_ = false;
  std::string to_socket_;
  uint32_t may_send_ = kPassageWindow;
  uint32_t may_receive_ = kPassageWindow;
  uint32_t taken_ = 0;        // by the socket, and not yet told to the other end
  bool ended_here_ = false;   // the socket will give no more
  bool ended_there_ = false;  // the other end will send no more
  bool shut_ = false;         // the socket has been told so
};

}  // namespace atl::microvm
