// The coroutine type of egress, and how its operations report errors: as values.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace atl::egress {

template <typename T>
using Task = boost::asio::awaitable<T>;

inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace atl::egress
