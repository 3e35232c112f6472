// Task: the coroutine type of the programs that wait by Boost.Asio.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace atl {

template <typename T>
using Task = boost::asio::awaitable<T>;

}  // namespace atl
