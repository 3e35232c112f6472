# The three shapes of target in this project:
#   atoll_library(<folder> [NO_EXCEPTIONS] [DEPS lib...])  every .cc of src/<folder> but main.cc and *_test.cc
#   atoll_program(<name> [STATIC] SOURCES main.cc [DEPS lib...])
#   atoll_unit_tests(<folder> [DEPS lib...])               every *_test.cc of src/<folder>, one binary
include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(CMAKE_CXX_FLAGS_RELEASE "-O2")

option(ATOLL_SANITIZE "build with address and undefined-behaviour sanitizers" OFF)

find_program(ATOLL_CCACHE ccache)
if(ATOLL_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${ATOLL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ATOLL_CCACHE})
endif()

add_library(atoll_options INTERFACE)
target_include_directories(atoll_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(atoll_options INTERFACE
  _GNU_SOURCE FMT_HEADER_ONLY ATOLL_VERSION="${PROJECT_VERSION}")
target_compile_options(atoll_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # g++ 12 sees overlaps that are not there in std::string's operator+ (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -fno-strict-aliasing -fstack-protector-strong -ffunction-sections -fdata-sections)
target_link_options(atoll_options INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now)
if(ATOLL_SANITIZE)
  # clang 14 cannot combine its check of function types with one section per function.
  target_compile_options(atoll_options INTERFACE
    -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize=function -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(atoll_options INTERFACE -fsanitize=address,undefined)
else()
  target_compile_definitions(atoll_options INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

function(atoll_library folder)
  cmake_parse_arguments(A "NO_EXCEPTIONS" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc */*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|/main|_main)\\.cc$")
  add_library(${folder} STATIC ${sources})
  target_link_libraries(${folder} PUBLIC atoll_options ${A_DEPS})
  if(A_NO_EXCEPTIONS)
    target_compile_options(${folder} PRIVATE -fno-exceptions -fno-rtti)
  endif()
endfunction()

function(atoll_program name)
  cmake_parse_arguments(A "STATIC;NO_EXCEPTIONS" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE atoll_options ${A_DEPS})
  if(A_NO_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fno-exceptions -fno-rtti)
  endif()
  if(A_STATIC AND NOT ATOLL_SANITIZE)
    target_link_options(${name} PRIVATE -static)
  endif()
endfunction()

function(atoll_unit_tests folder)
  cmake_parse_arguments(A "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc */*_test.cc)
  if(NOT sources)
    return()
  endif()
  find_package(GTest REQUIRED)
  add_executable(${folder}_test ${sources})
  target_link_libraries(${folder}_test PRIVATE ${folder} ${A_DEPS} GTest::gtest GTest::gtest_main)
  add_test(NAME ${folder} COMMAND ${folder}_test)
endfunction()
