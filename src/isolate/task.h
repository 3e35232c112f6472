// The coroutine type of atolld's inside.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace atl {

template <typename T>
using Task = boost::asio::awaitable<T>;

}  // namespace atl
