# fmt compiled once: as headers alone each unit that formats a text compiles it again. Debian has it as a shared library
# only, which programs of ours shall not need at run time.
include_guard()

file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/fmt.cc @ONLY CONTENT [[
#include <fmt/format-inl.h>

namespace fmt {
inline namespace v9 {
namespace detail {
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(const char*, const char*);
}  // namespace detail
}  // namespace v9
}  // namespace fmt
]])
add_library(atoll_fmt STATIC ${CMAKE_BINARY_DIR}/generated/fmt.cc)
target_compile_features(atoll_fmt PUBLIC cxx_std_20)
if(ATOLL_SANITIZE)
  target_compile_options(atoll_fmt PRIVATE -fsanitize=address,undefined)
endif()
