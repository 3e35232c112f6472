# Headers that most sources include, precompiled once for all targets that are compiled alike. A source still includes
# what it uses: the debug preset precompiles nothing, and shows a header that is missing.
#   plain     the standard library, without exceptions
#   standard  the standard library         standard_test  and GoogleTest
#   boost     and fmt, Boost.Asio and Boost.JSON; what is linked needs them then         boost_test  and GoogleTest
include_guard()
include(boost)

option(ATOLL_PRECOMPILE "precompile headers" ON)

# g++ 12 forgets that an inlined function came from a header of the system and warns of bounds that std::string's
# operator+ does not cross (GCC bug 105329). clang and the sanitizers look for them.
function(atoll_precompile target set)
  if(ATOLL_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM precompiled_${set})
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
endfunction()

set(ATOLL_STANDARD_HEADERS <algorithm> <array> <charconv> <chrono> <deque> <filesystem> <functional> <map> <memory>
  <optional> <set> <span> <sstream> <string> <string_view> <utility> <variant> <vector>)
set(ATOLL_BOOST_HEADERS <fmt/format.h>)
foreach(header any_io_executor as_tuple awaitable bind_cancellation_slot buffer cancellation_signal co_spawn detached
    io_context ip/tcp local/stream_protocol posix/stream_descriptor post read steady_timer this_coro thread_pool
    use_awaitable write)
  list(APPEND ATOLL_BOOST_HEADERS <boost/asio/${header}.hpp>)
endforeach()
foreach(header array object parse serialize value)
  list(APPEND ATOLL_BOOST_HEADERS <boost/json/${header}.hpp>)
endforeach()

if(NOT ATOLL_PRECOMPILE)
  return()
endif()
foreach(set plain standard standard_test boost boost_test)
  set(target precompiled_${set})
  set(source ${CMAKE_BINARY_DIR}/generated/${target}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "" @ONLY)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${target} PRIVATE atoll_options)
  set(headers ${ATOLL_STANDARD_HEADERS})
  if(set STREQUAL "plain")
    target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti)
  endif()
  if(set MATCHES "^boost")
    target_compile_definitions(${target} PRIVATE ${ATOLL_ASIO_DEFINITIONS})
    list(APPEND headers ${ATOLL_BOOST_HEADERS})
  endif()
  if(set MATCHES "_test$")
    find_package(GTest REQUIRED)
    target_link_libraries(${target} PRIVATE GTest::gtest)
    list(APPEND headers <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} PRIVATE ${headers})
endforeach()
