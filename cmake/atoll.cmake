# The three shapes of target in this project:
#   atoll_library(<folder> [NO_EXCEPTIONS|ASIO] [DEPS lib...])  every .cc of src/<folder> but main.cc and *_test.cc;
#                                                               ASIO: it uses Boost.Asio or what is built on it
#   atoll_program(<name> [STATIC] SOURCES main.cc [DEPS lib...])
#   atoll_unit_tests(<folder> [DEPS lib...])               every *_test.cc of src/<folder>, one binary
include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# -O2 compiles a quarter longer and is not faster here: requests wait for the kernel (docs/decisions/001-o1.md).
set(CMAKE_CXX_FLAGS_RELEASE "-O1")

option(ATOLL_SANITIZE "build with address and undefined-behaviour sanitizers" OFF)
option(ATOLL_COVERAGE "count which lines run (clang only), for tools/coverage" OFF)

# What one clone compiled need not be compiled in another: paths of the clone are no part of a key, and a precompiled
# header counts by its content.
find_program(ATOLL_CCACHE ccache)
if(ATOLL_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${ATOLL_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(atoll_options INTERFACE)
target_include_directories(atoll_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(atoll_options INTERFACE
  _GNU_SOURCE ATOLL_VERSION="${PROJECT_VERSION}")
target_compile_options(atoll_options INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # g++ 12 sees overlaps that are not there in std::string's operator+ (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -fno-strict-aliasing -fstack-protector-strong -ffunction-sections -fdata-sections
  # What a program says of its sources is the same in every clone.
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=
  # g++ collects its garbage only when there is much of it: a tenth of its time.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=200 --param=ggc-min-heapsize=524288>)
target_link_libraries(atoll_options INTERFACE atoll_fmt)
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

if(ATOLL_COVERAGE)
  # Counters live in the mapped profile file: a child that is killed or calls _exit() has counted too.
  target_compile_options(atoll_options INTERFACE -fprofile-instr-generate -fcoverage-mapping
    "SHELL:-mllvm -runtime-counter-relocation")
  target_link_options(atoll_options INTERFACE -fprofile-instr-generate)
endif()

# `make test` compiles and runs the unit tests of a folder once. Those of folders that read bytes of strangers, or whose
# tests compile in seconds, are built with sanitizers; the others, which start real isolates or take ten times as long
# to compile so, as users have them. `make test-long` runs all of them both ways, and each fuzz test.
set(ATOLL_SANITIZED_UNITS base http store notary builder egress)
set(ATOLL_SANITIZED_LATER isolate sandbox api cli daemon)
add_custom_target(sanitized)
add_custom_target(long_tests)

function(atoll_put_off test target)
  set_tests_properties(${test} PROPERTIES LABELS long)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(long_tests ${target})
endfunction()

function(atoll_choose_build test target folder)
  if(folder IN_LIST ATOLL_SANITIZED_UNITS)
    set(is_sanitized ON)
  else()
    set(is_sanitized OFF)
  endif()
  if(ATOLL_SANITIZE AND is_sanitized)
    add_dependencies(sanitized ${target})
  elseif(ATOLL_SANITIZE OR is_sanitized)
    atoll_put_off(${test} ${target})
  endif()
endfunction()

# A fuzz test is run in `make test` unless it needs a folder whose files take as long as ten others.
function(atoll_sanitize_test name target folders)
  foreach(folder ${folders})
    if(folder IN_LIST ATOLL_SANITIZED_LATER)
      atoll_put_off(${name} ${target})
      return()
    endif()
  endforeach()
  add_dependencies(sanitized ${target})
endfunction()

# Sources of one target, several to a translation unit (tools/unity-groups says why and which).
option(ATOLL_UNITY "compile several sources in one translation unit" ON)
function(atoll_unite target sources)
  if(NOT ATOLL_UNITY)
    return()
  endif()
  execute_process(COMMAND python3 ${CMAKE_SOURCE_DIR}/tools/unity-groups ${sources}
    OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(line ${groups})
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP group${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes a source that is not the unit's main file for a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# For what is linked without its neighbours: tests put another definition in the place of some, and programs that need
# one source shall not need the libraries of all.
function(atoll_object_of_its_own)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(atoll_library folder)
  cmake_parse_arguments(A "NO_EXCEPTIONS;ASIO" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc */*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|/main|_main)\\.cc$")
  add_library(${folder} STATIC ${sources})
  atoll_unite(${folder} "${sources}")
  target_link_libraries(${folder} PUBLIC atoll_options ${A_DEPS})
  if(A_NO_EXCEPTIONS)
    target_compile_options(${folder} PRIVATE -fno-exceptions -fno-rtti)
    atoll_precompile(${folder} plain)
  elseif(A_ASIO)
    atoll_precompile(${folder} boost)
  else()
    atoll_precompile(${folder} standard)
  endif()
  set_target_properties(${folder} PROPERTIES ATOLL_ASIO ${A_ASIO})
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

# Last in a directory with tests: tells each of them where to report its methods (tools/test_run/reports.py).
function(atoll_report_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(name ${tests})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
      "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/reports/${name}.xml"
      "ATOLL_TEST_REPORT=${CMAKE_BINARY_DIR}/reports/${name}.jsonl")
  endforeach()
endfunction()

# A file of Python tests that start Atolls, between one look at the whole host before all of them and one after. It
# runs beside others, unless it ends with `main(alone=True)`. HEAVY: its machines are emulated, one such file at a time.
function(atoll_service_test name file)
  cmake_parse_arguments(A "HEAVY" "PYTHON;LABEL;TIMEOUT;COST" "ENVIRONMENT" ${ARGN})
  if(NOT A_PYTHON)
    set(A_PYTHON python3)
  endif()
  add_test(NAME ${name} COMMAND ${A_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  if(NOT A_ENVIRONMENT)
    set(A_ENVIRONMENT ATOLL_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  endif()
  set_tests_properties(${name} PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT ${A_TIMEOUT} LABELS ${A_LABEL} FIXTURES_REQUIRED host
    ENVIRONMENT "${A_ENVIRONMENT};PYTHONDONTWRITEBYTECODE=1")
  file(STRINGS ${file} alone REGEX "main\\(alone=True\\)")
  if(alone)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(A_HEAVY)
    set_tests_properties(${name} PROPERTIES PROCESSORS 2 RESOURCE_LOCK emulation)
  endif()
  if(A_COST)  # seconds: the longest begin first, also where none has been measured
    set_tests_properties(${name} PROPERTIES COST ${A_COST})
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
  atoll_unite(${folder}_test "${sources}")
  target_link_libraries(${folder}_test PRIVATE ${folder} ${A_DEPS} GTest::gtest GTest::gtest_main)
  get_target_property(asio ${folder} ATOLL_ASIO)
  if(asio)
    atoll_precompile(${folder}_test boost_test)
  else()
    atoll_precompile(${folder}_test standard_test)
  endif()
  add_test(NAME ${folder} COMMAND ${folder}_test)
  if(folder MATCHES "^(agent|api|sandbox)$")  # they wait for as long as tests of whole systems
    set_tests_properties(${folder} PROPERTIES COST 50)
  endif()
  atoll_choose_build(${folder} ${folder}_test ${folder})
  atoll_report_tests()
endfunction()
