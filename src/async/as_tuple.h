// kAsTuple: a completion token. `auto [error, count] = co_await socket.async_receive(room,
// kAsTuple)`.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl {

inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace atl
