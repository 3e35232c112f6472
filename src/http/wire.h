// Wire: one TCP connection as reads and writes with time limits, and the bytes read ahead. Knows no
// HTTP.
//
// Time limits are plain deadlines that the server looks at once per sweep: setting one costs a
// store, not a timer. Private to this folder.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/result.h"

namespace atl::http {

// Errors come as values: no exception of Asio can leave an operation awaited with this.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

inline constexpr SteadyTime kNever = SteadyTime::max();

class Wire {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Parts = std::array<boost::asio::const_buffer, 3>;

  explicit Wire(Socket socket) : socket_(std::move(socket)) {}
  ~Wire() { watch(nullptr); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  Socket& socket() { return socket_; }

  // Bytes that were read and not consumed. The view ends with the next read.
  std::string_view input() const { return {input_.data() + begin_, end_ - begin_}; }
  void consume(size_t bytes);
  // Gives a buffer of more than `most_bytes` back, if nothing is in it: thousands of idle
  // connections must not each hold the one of their largest request.
  void trim(size_t most_bytes);

  // Appends to input(), which may grow to `room` bytes; 0 at the end of the stream, kTimeout at
  // `deadline`, kExhausted when there is no room.
  boost::asio::awaitable<Result<size_t>> read_more(SteadyTime deadline, size_t room);

  // Writes every byte; kTimeout when none moves for `patience`.
  boost::asio::awaitable<Result<void>> write(Parts parts, std::chrono::milliseconds patience);

  // Calls `on_end` when the peer ends its side or the connection breaks, until told otherwise by an
  // empty one. Only while nobody reads: bytes that come meanwhile are read ahead into input(). A
  // peer that sends more than that holds is no longer watched.
  void watch(std::function<void()> on_end);
  bool is_writing() const { return write_deadline_ != kNever; }

  // Ends our side and waits a moment for the peer to end its own. Closing at once with bytes unread
  // would send a reset, which can destroy the answer before the peer has read it.
  boost::asio::awaitable<void> linger();

  // All operations, pending and later, return kCancelled.
  void interrupt();
  bool interrupted() const { return interrupted_; }

  // Called by the server now and then: cancels what is overdue.
  void sweep(SteadyTime now);
  // What else to do at a sweep; empty for nothing.
  void set_on_sweep(std::function<void(SteadyTime)> on_sweep) { on_sweep_ = std::move(on_sweep); }

  // For those who write to socket() themselves.
  void set_write_deadline(SteadyTime deadline) { write_deadline_ = deadline; }
  // kTimeout, or kCancelled when it was the peer or an interruption.
  Error failure(std::string_view operation, const boost::system::error_code& error) const;

 private:
  // Outlives the wire when a wait for the peer is still pending.
  struct Watch {
    std::function<void()> on_end;
    bool pending = false;
  };
  enum class Peer : unsigned char { kThere, kEnded, kAheadOfUs };
  void wait_for_peer();
  Peer look_at_peer();

  Socket socket_;
  std::shared_ptr<Watch> watch_;
  std::string input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  SteadyTime read_deadline_ = kNever;
  SteadyTime write_deadline_ = kNever;
  bool overdue_ = false;
  bool interrupted_ = false;
  std::function<void(SteadyTime)> on_sweep_;
};

}  // namespace atl::http
