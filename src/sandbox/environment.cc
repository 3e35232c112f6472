#include "sandbox/environment.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace atl::sandbox {

bool is_variable_name(std::string_view name) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), is_word);
}

std::vector<std::string> compose_environment(uint32_t cpu_millis,
                                             const std::vector<Variables>& given) {
  std::string threads = std::to_string(std::max<uint32_t>(1, (cpu_millis + 999) / 1000));
  std::map<std::string, std::string> variables = {
      {"PATH", "/run/atoll/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"LANG", "C.UTF-8"},
      {"OMP_NUM_THREADS", threads},
      {"OPENBLAS_NUM_THREADS", threads},
      {"MKL_NUM_THREADS", threads},
      {"GOMAXPROCS", threads},
  };
  for (const Variables& list : given)
    for (const auto& [name, value] : list) variables[name] = value;
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace atl::sandbox
