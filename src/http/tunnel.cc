#include "http/tunnel.h"

namespace atl::http {

constexpr size_t kMaxInputBytes = 64 * 1024;

boost::asio::awaitable<Result<std::string>> Tunnel::read() {
  if (wire_.input().empty()) {
    auto count = co_await wire_.read_more(kNever, kMaxInputBytes);
    if (!count) co_return std::move(count).error();
  }
  std::string bytes(wire_.input());
  wire_.consume(bytes.size());
  co_return bytes;
}

boost::asio::awaitable<Result<void>> Tunnel::write(std::string_view bytes) {
  Wire::Parts parts{boost::asio::const_buffer(bytes.data(), bytes.size())};
  auto written = co_await wire_.write(parts, write_time_);
  co_return written;
}

}  // namespace atl::http
