// A WebSocket after the upgrade. One reader and one writer at a time.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace atl::http {

class WebSocket {
 public:
  enum class Kind : unsigned char { kText, kBinary };
  struct Message {
    Kind kind;
    std::string data;
  };

  virtual ~WebSocket() = default;
  // kCancelled when the peer has closed.
  virtual boost::asio::awaitable<Result<Message>> read() = 0;
  virtual boost::asio::awaitable<Result<void>> write(Kind kind, std::string_view data) = 0;
  virtual boost::asio::awaitable<Result<void>> close(unsigned code, std::string_view reason) = 0;
};

}  // namespace atl::http
