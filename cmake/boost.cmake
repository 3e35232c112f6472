# Boost.Asio and Boost.JSON compiled once, instead of in every translation unit that includes them.
include_guard()
find_package(Boost 1.81 REQUIRED)
find_package(Threads REQUIRED)

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/asio.cc @ONLY
  CONTENT "#include <boost/asio/impl/src.hpp>\n")
add_library(atoll_asio STATIC ${CMAKE_BINARY_DIR}/generated/asio.cc)
target_link_libraries(atoll_asio PUBLIC Boost::headers Threads::Threads)
target_compile_features(atoll_asio PUBLIC cxx_std_20)
set(ATOLL_ASIO_DEFINITIONS BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_compile_definitions(atoll_asio PUBLIC ${ATOLL_ASIO_DEFINITIONS})
if(ATOLL_SANITIZE)
  target_link_libraries(atoll_asio PRIVATE atoll_options)
endif()
# g++ 12 does not see that awaitable frames are freed by the operator delete of the same class.
target_compile_options(atoll_asio INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/json.cc @ONLY
  CONTENT "#include <boost/json/src.hpp>\n")
add_library(atoll_json STATIC ${CMAKE_BINARY_DIR}/generated/json.cc)
target_link_libraries(atoll_json PUBLIC Boost::headers)
target_compile_features(atoll_json PUBLIC cxx_std_20)
if(ATOLL_SANITIZE)
  target_link_libraries(atoll_json PRIVATE atoll_options)
endif()
