// A connection after "101 Switching Protocols": raw bytes both ways. One reader and one writer at a
// time; its wire outlives it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/wire.h"

namespace atl::http {

class Tunnel {
 public:
  Tunnel(Wire& wire, std::chrono::milliseconds write_time) : wire_(wire), write_time_(write_time) {}

  // Empty at the end of the peer's side.
  boost::asio::awaitable<Result<std::string>> read();
  boost::asio::awaitable<Result<void>> write(std::string_view bytes);

 private:
  Wire& wire_;
  std::chrono::milliseconds write_time_;
};

}  // namespace atl::http
