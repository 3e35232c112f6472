// What atoll-bench is told on its command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace atl::bench {

struct Options {
  std::string host;
  unsigned short port = 0;
  std::string key;
  std::string template_name = "python";  // of what is created
  int runs = 100;                        // of each client
  int warm_ups = 5;
  int clients = 16;     // of what is measured with many
  int seconds = 10;     // of the sustained measurement
  int sandboxes = 100;  // made at once, or kept alive
  std::vector<std::string> measures;
};

// Nothing after a message on standard error.
std::optional<Options> parse_options(int count, char** arguments);

}  // namespace atl::bench
