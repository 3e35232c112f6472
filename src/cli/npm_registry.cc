#include "cli/npm_registry.h"

#include <stdlib.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace atl::cli {
namespace {

bool is_plain_url(const std::string& url) {
  return (url.starts_with("https://") || url.starts_with("http://")) &&
         std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

std::string find_npm_registry() {
  const char* set = getenv("npm_config_registry");
  if (set != nullptr && is_plain_url(set)) return set;
  const char* home = getenv("HOME");
  auto text = read_file(std::string(home == nullptr ? "/nonexistent" : home) + "/.npmrc");
  if (!text) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::erase_if(line, [](char c) { return c <= ' '; });
    constexpr std::string_view kKey = "registry=";
    if (line.starts_with(kKey) && is_plain_url(line.substr(kKey.size())))
      return line.substr(kKey.size());
  }
  return "";
}

}  // namespace atl::cli
