#include "cli/go_proxy.h"

#include <stdlib.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace atl::cli {
namespace {

bool is_plain(const std::string& list) {
  return !list.empty() &&
         std::all_of(list.begin(), list.end(), [](char c) { return c > ' ' && c < 127; });
}

std::string settings_file() {
  const char* set = getenv("GOENV");
  if (set != nullptr && *set != '\0') return set;
  const char* home = getenv("HOME");
  return std::string(home == nullptr ? "/nonexistent" : home) + "/.config/go/env";
}

}  // namespace

std::string find_go_proxy() {
  const char* set = getenv("GOPROXY");
  if (set != nullptr && is_plain(set)) return set;
  auto text = read_file(settings_file());
  if (!text) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kKey = "GOPROXY=";
    if (line.starts_with(kKey) && is_plain(line.substr(kKey.size())))
      return line.substr(kKey.size());
  }
  return "";
}

}  // namespace atl::cli
