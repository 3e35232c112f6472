#include "options.h"

#include <stdio.h>
#include <stdlib.h>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace atl::bench {
namespace {

std::optional<int> parse_count(std::string_view text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

bool parse_url(std::string_view url, Options& options) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  size_t colon = url.rfind(':');
  if (colon == url.npos || colon == 0) return false;
  std::optional<int> port = parse_count(url.substr(colon + 1));
  if (!port || *port > 65'535) return false;
  options.host = url.substr(0, colon);
  options.port = static_cast<unsigned short>(*port);
  return true;
}

bool set_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--url") return parse_url(value, options);
  if (name == "--measure") {
    options.measures.emplace_back(value);
    return true;
  }
  if (name == "--template") {
    options.template_name = value;
    return true;
  }
  struct {
    std::string_view name;
    int* value;
  } counts[] = {{"--runs", &options.runs},
                {"--warm-ups", &options.warm_ups},
                {"--clients", &options.clients},
                {"--seconds", &options.seconds},
                {"--sandboxes", &options.sandboxes}};
  std::optional<int> count = parse_count(value);
  for (auto& known : counts) {
    if (known.name != name || !count) continue;
    *known.value = *count;
    return true;
  }
  return false;
}

}  // namespace

std::optional<Options> parse_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count || !set_option(arguments[i], arguments[i + 1], options)) {
      fmt::print(stderr, "atoll-bench: bad option {}\n", arguments[i]);
      return std::nullopt;
    }
  }
  const char* key = getenv("ATOLL_KEY");
  if (key == nullptr || options.port == 0 || options.measures.empty()) {
    fmt::print(stderr, "atoll-bench: want --url http://host:port, --measure NAME and ATOLL_KEY\n");
    return std::nullopt;
  }
  options.key = key;
  return options;
}

}  // namespace atl::bench
